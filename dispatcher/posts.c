#include "posts.h"

#define TASK_KEY_MAX      1024
#define OUTCOME_KEY_MAX   512
#define OUTCOME_MAX_BYTES 8192

void post_task(struct work *work, const struct task *task, struct str event_key, struct str value)
{
    struct buf CLEANUP(buf_clear) key;
    struct headers headers;
    buf_init(&key, TASK_KEY_MAX);
    task_key(&key, task->repo, event_key);
    headers_init(&headers);
    task_to_headers(task, &headers);
    const struct post post = {
        .topic = topic_of_tier(task->level),
        .key = buf_str(&key),
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
