/* What every role of the dispatcher begins with. */
#include "../common/github/github.h"
#include "../common/io/redis.h"
#include "dispatcher.h"

enum err dispatcher_redis(const struct dispatcher *d, struct redis **ret, struct why *why)
{
    const struct redis_options options = config_redis(d->config, d->topics.key_prefix);
    return redis_new(ret, &options, why);
}

enum err dispatcher_github(const struct dispatcher *d, struct http_client *client, int level,
                           struct redis *budget, struct github **ret, struct why *why)
{
    struct github_options options = {
        .api_url = d->api_url,
        .app_id = d->app_id,
        .key = d->key,
        .client = client,
        .budget = d->budget,
        .redis = budget,
        .class = level == 4 ? BUDGET_L4
                 : level    ? BUDGET_REST
                            : BUDGET_AGGREGATE,
    };
    return github_new(ret, &options, why);
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
