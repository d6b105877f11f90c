#include "dispatcher.h"

#include "../common/base/clock.h"
#include "../common/github/github.h"
#include "../common/io/redis.h"
#include "../common/model/ids.h"
#include "metrics.h"

#define OUTCOME_KEY_MAX   512
#define OUTCOME_MAX_BYTES 8192

enum err dispatcher_clients(const struct dispatcher *d, int level, int max_calls,
                            struct clients *ret, struct why *why)
{
    const struct redis_options redis = config_redis(d->config, d->topics.key_prefix);
    struct http_client_options http = d->http;
    http.max_connections_host = max_calls;
    enum err err = redis_new(&ret->redis, &redis, why);
    if (!err)
        err = http_client_new(&ret->http, &http, why);
    if (err)
        return err;
    const struct github_options github = {
        .api_url = d->api_url,
        .app_id = d->app_id,
        .key = d->key,
        .client = ret->http,
        .gate = d->gate,
        .redis = ret->redis,
        .class = level == 4 ? BUDGET_L4
                 : level    ? BUDGET_REST
                            : BUDGET_AGGREGATE,
    };
    return github_new(&ret->github, &github, why);
}

void dispatcher_wait_allowlist(struct role_ctx *role, const struct dispatcher *d)
{
    while (!role_stopping(role) && !allowlist_feed_caught_up(d->feed)) {
        role_alive(role);
        role_ready(role, "the allowlist topic has not been read yet");
        wake_reset(role_wake(role));
        if (!role_stopping(role))
            wake_wait(role_wake(role), 100);
    }
}

static struct metrics *metrics_of(const struct work *work)
{
    return role_metrics(work_options(work)->role);
}

void post_tasks(struct work *work, const struct task *task, struct str repos, size_t n,
                struct str value)
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
    metrics_add(metrics_of(work), M_TASKS, METRIC_LABELS(str_of(level_name(task->level))),
                (double)n);
}

void outcome_now(struct outcome *ret, const struct task *task, enum outcome_kind kind,
                 const char *reason)
{
    outcome_init(ret, task);
    ret->outcome = kind;
    ret->at_ms = clock_wall_ms();
    ret->latency_ms = ret->at_ms - task->event.received_ms;
    str_copy(ret->error, sizeof(ret->error), str_of(reason));
}

void post_outcome(struct work *work, const struct outcome *outcome)
{
    struct buf CLEANUP(buf_clear) key, CLEANUP(buf_clear) json;
    struct headers headers;
    buf_init(&key, OUTCOME_KEY_MAX);
    buf_init(&json, OUTCOME_MAX_BYTES);
    buf_puts(&key, outcome->delivery_id);
    buf_putc(&key, '/');
    buf_puts(&key, outcome->repo);
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
    dispatcher_count_outcome(metrics_of(work), outcome);
}
