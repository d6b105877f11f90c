#include "reporter.h"

#include <stdlib.h>

#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/crypto/jwt.h"
#include "../common/github/github.h"
#include "../common/io/http_client.h"

#define ALLOWLIST_TICK_MS 100

static enum err budget_init(struct reporter *r, const struct config *config, struct why *why)
{
    const char *content = config_text(config, "CRCR_BUDGET_CONTENT_CALLS");
    struct budget_rules rules = {
        .limit = { [BUDGET_REQUESTS_HOUR] = config_number(config, "CRCR_BUDGET_REQUESTS_HOUR"),
                   [BUDGET_POINTS_MINUTE] = config_number(config, "CRCR_BUDGET_POINTS_MINUTE"),
                   [BUDGET_CONTENT_MINUTE] = config_number(config, "CRCR_BUDGET_CONTENT_MINUTE"),
                   [BUDGET_CONTENT_HOUR] = config_number(config, "CRCR_BUDGET_CONTENT_HOUR") },
        .minute_ms = config_number(config, "CRCR_BUDGET_MINUTE") * 1000,
        .kept_percent = (int)config_number(config, "CRCR_BUDGET_KEPT_PERCENT"),
        .replicas = (int)config_number(config, "CRCR_BUDGET_REPLICAS"),
        .whole_app = str_is(str_of(config_text(config, "CRCR_BUDGET_SCOPE")), "app"),
    };
    if (!budget_content_parse(&rules, str_of(content)))
        return why_set(why, ERR_STOP,
                       "CRCR_BUDGET_CONTENT_CALLS: \"%s\"; accepted are dispatch, check_run and "
                       "comment, comma-separated, or none",
                       content);
    r->budget = github_budget_new(&rules);
    return OK;
}

/* What can be wrong in the configuration and is not seen in one value alone. */
static enum err reporter_init(struct reporter *r, struct daemon_ctx *ctx, struct why *why)
{
    const struct config *config = daemon_config(ctx);
    struct redis *redis = NULL;
    r->kafka = config_kafka(config, "crcr-reporter");
    r->redis = config_redis(config, r->topics.key_prefix);
    r->times.ttl_s = config_number(config, "CRCR_STATUS_TTL");
    r->times.zombie_ms = config_number(config, "ZOMBIE_TIMEOUT_SECONDS") * 1000;
    r->quiet_ms = config_number(config, "CRCR_RUN_QUIET_SECONDS") * 1000;
    r->upstream_repo = config_text(config, "UPSTREAM_REPO");
    r->ca_file = config_text(config, "CRCR_CA_FILE");
    r->allow_http = config_bool(config, "CRCR_ALLOW_HTTP");
    r->oncall_comments = config_bool(config, "CRCR_ONCALL_COMMENTS");
    enum err err = topics_init(&r->topics, config_text(config, "CRCR_TOPIC_PREFIX"), why);
    if (err == OK)
        err = redis_new(&redis, &r->redis, why); /* does not connect */
    redis_free(redis);
    if (err == OK)
        err = budget_init(r, config, why);
    if (err == OK && daemon_has_role(ctx, "reconcile"))
        err = jwt_key_new(&r->app_key, str_of(config_text(config, "GITHUB_APP_PRIVATE_KEY")), why);
    return err;
}

void reporter_wait_allowlist(const struct reporter *r, struct role_ctx *role)
{
    role_ready(role, "the allowlist has not been read yet");
    while (!role_stopping(role) && !allowlist_feed_caught_up(r->feed)) {
        role_alive(role);
        wake_reset(role_wake(role));
        if (!role_stopping(role))
            wake_wait(role_wake(role), ALLOWLIST_TICK_MS); /* the feed wakes nobody */
    }
}

/* On the feed's thread. */
static void allowlist_refused(const struct why *why)
{
    log_warn("allowlist_record_refused", LOG_STR("error", str_of(why->text)));
}

enum err reporter_start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why)
{
    struct reporter *r = mem_alloc(1, sizeof(*r));
    *opaque = r;
    enum err err = reporter_init(r, ctx, why);
    if (err != OK || check_only)
        return err;
    return allowlist_feed_new(&r->feed, &r->kafka, r->topics.name[TOPIC_ALLOWLIST],
                              allowlist_refused, daemon_watch(ctx, "allowlist"), why);
}

void reporter_stop(void *opaque)
{
    struct reporter *r = opaque;
    if (!r)
        return;
    allowlist_feed_free(r->feed);
    jwt_key_free(r->app_key);
    github_budget_free(r->budget);
    free(r);
}
