#include "posts.h"

#define OUTCOME_KEY_MAX   512
#define OUTCOME_MAX_BYTES 8192

void post_tasks(struct work *work, const struct task *task, struct str repos, struct str value)
{
    struct headers headers;
    headers_init(&headers);
    task_to_headers(task, repos, &headers);
    const struct post post = {
        .topic = topic_of_tier(task->level),
        .key = task->event_key,
        .value = value,
        .lasting = true,
        .headers = &headers,
    };
    work_put(work, &post);
}

void post_outcome(struct work *work, const struct outcome *outcome)
{
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) json;
    struct headers headers;
    buf_init(&key, OUTCOME_KEY_MAX);
    buf_init(&json, OUTCOME_MAX_BYTES);
    buf_printf(&key, "%s/%s", outcome->delivery_id, outcome->repo);
    outcome_to_json(outcome, &json);
    headers_init(&headers);
    headers_put(&headers, "delivery", str_of(outcome->delivery_id));
    headers_put(&headers, "repo", str_of(outcome->repo));
    const struct post post = {
        .topic = TOPIC_DISPATCHES,
        .key = buf_str(&key),
        .value = buf_str(&json),
        .headers = &headers,
    };
    work_put(work, &post);
}
