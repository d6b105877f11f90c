#include "reporter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/crypto/jwt.h"
#include "../common/github/github.h"
#include "../common/io/http_client.h"

#define ALLOWLIST_TICK_MS 100

void reporter_wait_allowlist(const struct reporter *r, struct role_ctx *role)
{
    role_ready(role, "the allowlist has not been read yet");
    while (!role_stopping(role) && !allowlist_feed_caught_up(r->feed))
        reporter_tick(role, ALLOWLIST_TICK_MS); /* the feed wakes nobody */
}

void reporter_tick(struct role_ctx *role, int ms)
{
    role_alive(role);
    wake_reset(role_wake(role));
    if (!role_stopping(role))
        wake_wait(role_wake(role), ms);
}

void reporter_redis_seen(struct role_ctx *role, bool up, const char *reason)
{
    struct str name = str_of(role_name(role));
    metrics_set(role_metrics(role), METRIC_REDIS_UP, METRIC_LABELS(name), up);
    if (up)
        log_info("redis_back", LOG_STR("role", name));
    else
        log_warn("redis_unavailable", LOG_STR("role", name), LOG_STR("error", str_of(reason)));
}

void reporter_put_dirty_key(struct buf *to, struct str head_sha, struct str repo)
{
    buf_put(to, head_sha);
    buf_putc(to, '/');
    for (size_t i = 0; i < repo.len; i++)
        buf_putc(to, (char)tolower((unsigned char)repo.ptr[i]));
}

/* On the feed's thread. */
static void allowlist_refused(const struct why *why)
{
    log_warn("allowlist_record_refused", LOG_STR("error", str_of(why->text)));
}

/* The pages stand at the root of their host. */
static enum err public_url_check(const char *url, struct why *why)
{
    const char *host = url ? strstr(url, "://") : NULL;
    if (!host || !strpbrk(host + 3, "/?#@"))
        return OK;
    return why_set(why, ERR_STOP,
                   "CRCR_PUBLIC_URL has more than scheme, host and port; accepted: "
                   "https://crcr.example.org");
}

enum err reporter_start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why)
{
    const struct config *config = daemon_config(ctx);
    struct reporter *r = mem_alloc(1, sizeof(*r));
    struct redis *redis = NULL;
    struct budget_rules rules;
    *opaque = r;
    r->kafka = config_kafka(config, "crcr-reporter");
    r->redis = config_redis(config, r->topics.key_prefix);
    r->times.ttl_s = config_number(config, "CRCR_STATUS_TTL");
    r->times.overdue_ms = config_number(config, "ZOMBIE_TIMEOUT_SECONDS") * 1000;
    r->quiet_ms = config_number(config, "CRCR_RUN_QUIET_SECONDS") * 1000;
    r->job_checks_max = config_number(config, "CRCR_JOB_CHECKS_MAX");
    r->upstream_repo = config_text(config, "UPSTREAM_REPO");
    r->public_url = config_text(config, "CRCR_PUBLIC_URL");
    r->ca_file = config_text(config, "CRCR_CA_FILE");
    r->known_neutral = str_is(str_of(config_text(config, "CRCR_KNOWN_FAILURES")), "neutral");
    r->oncall_comments = config_bool(config, "CRCR_ONCALL_COMMENTS");
    /* What can be wrong in the configuration and is not seen in one value alone. */
    enum err err = topics_init(&r->topics, config_text(config, "CRCR_TOPIC_PREFIX"), why);
    if (!err)
        err = public_url_check(r->public_url, why);
    if (!err)
        err = redis_new(&redis, &r->redis, why); /* does not connect */
    redis_free(redis);
    if (!err)
        err = config_budget(config, &rules, why);
    if (!err)
        r->gate = gate_new(&rules);
    if (!err && daemon_has_role(ctx, "reconcile"))
        err = jwt_key_new(&r->app_key, str_of(config_text(config, "GITHUB_APP_PRIVATE_KEY")), why);
    if (err || check_only)
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
    gate_free(r->gate);
    free(r);
}
