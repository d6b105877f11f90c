/* crcr-ingest: HTTP in, topics out. Answers 2xx only for what Kafka has acknowledged. */
#include <stdlib.h>
#include <unistd.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/daemon/daemon.h"
#include "../common/model/topics.h"
#include "callback_route.h"
#include "metrics.h"
#include "webhook.h"

#define DEADLINE_MS            8000  /* GitHub hangs up after 10 s */
#define WEBHOOK_BODY_MS        10000 /* GitHub has hung up by then */
#define CALLBACK_BODY_MS       30000
#define DRAIN_MS               10000
#define BROKER_CHECK_MS        5000
#define BROKER_WAIT_MS         1000
#define REDIS_TIMEOUT_MS       300 /* a callback asks up to five times within its 8 s */
#define CALLBACK_BYTES_PER_MIN (20 << 20)
#define MAX_HTTP_THREADS       8
#define N_NEEDED               3
#define N_WRITTEN              2 /* the first two are written */
#define WEBHOOK_PATH           "/github/webhook"
#define WHOAMI_PATH            "/github/whoami"

struct service {
    struct responder responder;
    struct webhook_route webhook;
    struct callback_route *callback;
    struct http_server *server;
    struct oidc *oidc;
    struct allowlist_feed *feed;
    struct callback_keys *keys; /* NULL: not configured */
    struct topics topics;
    const char *needed[N_NEEDED]; /* topics, for readiness */
    int64_t checked_ms;           /* monotonic: when the brokers were last asked for the topics */
};

/* ---- routes ------------------------------------------------------------------------------ */

static void on_webhook_begin(void *opaque, struct http_exchange *x)
{
    webhook_begin(&((struct service *)opaque)->webhook, x);
}

static void on_webhook(void *opaque, struct http_exchange *x)
{
    webhook_handle(&((struct service *)opaque)->webhook, x);
}

static void on_callback_begin(void *opaque, struct http_exchange *x)
{
    callback_begin(((struct service *)opaque)->callback, x, &callback_names);
}

static void on_callback(void *opaque, struct http_exchange *x)
{
    callback_handle(((struct service *)opaque)->callback, x, &callback_names);
}

static void on_whoami_begin(void *opaque, struct http_exchange *x)
{
    callback_begin(((struct service *)opaque)->callback, x, &whoami_names);
}

static void on_whoami(void *opaque, struct http_exchange *x)
{
    callback_handle(((struct service *)opaque)->callback, x, &whoami_names);
}

static void on_refused(void *opaque, struct http_exchange *x, int status)
{
    struct str path = http_path(x);
    responder_refused(&((struct service *)opaque)->responder, x,
                      str_is(path, WEBHOOK_PATH)  ? &webhook_names
                      : str_is(path, WHOAMI_PATH) ? &whoami_names
                                                  : &callback_names,
                      status);
}

static const struct http_route routes[] = {
    { "POST", WEBHOOK_PATH, on_webhook_begin, on_webhook, WEBHOOK_MAX_BYTES, DEADLINE_MS,
      WEBHOOK_BODY_MS },
    { "POST", "/github/callback", on_callback_begin, on_callback, CALLBACK_MAX_BYTES, DEADLINE_MS,
      CALLBACK_BODY_MS },
    { "GET", WHOAMI_PATH, on_whoami_begin, on_whoami, 0, DEADLINE_MS, CALLBACK_BODY_MS },
};

/* ---- start ------------------------------------------------------------------------------- */

/* What the configuration alone can show. */
static enum err rules_init(struct service *s, const struct config *c, bool check_only,
                           struct why *why)
{
    enum err err =
        signature_secrets_init(&s->webhook.rules.secrets, config_text(c, "GITHUB_APP_SECRET"), why);
    if (err)
        return err;
    s->webhook.rules.events.upstream_repo = str_of(config_text(c, "UPSTREAM_REPO"));
    s->webhook.rules.events.push_refs = str_of(config_text(c, "CRCR_PUSH_REFS"));
    /* Webhooks name the App's number; a client ID, which is accepted too, cannot be compared. */
    struct str app_id = str_of(config_text(c, "GITHUB_APP_ID"));
    uint64_t number;
    s->webhook.rules.app_id = str_to_u64(app_id, &number) ? app_id : STR_NONE;
    err = topics_init(&s->topics, config_text(c, "CRCR_TOPIC_PREFIX"), why);
    if (err)
        return err;
    s->webhook.topic = s->needed[0] = s->topics.name[TOPIC_EVENTS];
    s->needed[1] = s->topics.name[TOPIC_CALLBACKS];
    s->needed[2] = s->topics.name[TOPIC_ALLOWLIST];
    const char *keys = config_text(c, "CRCR_CALLBACK_TOKEN_KEY");
    if (keys)
        err = callback_keys_new(&s->keys, str_of(keys), why);
    else
        log_warn(
            "callback_token_key_unset",
            LOG_STR("effect", STR_LIT("only dispatch records prove where a callback belongs")));
    const struct oidc_options oidc = { .issuers = config_text(c, "CRCR_OIDC_ISSUERS"),
                                       .audience = config_text(c, "CRCR_OIDC_AUDIENCE"),
                                       .ca_file = config_text(c, "CRCR_CA_FILE"),
                                       .allow_http = config_bool(c, "CRCR_ALLOW_HTTP"),
                                       .check_only = check_only };
    return !err ? oidc_new(&s->oidc, &oidc, why) : err;
}

static struct redis_options redis_options_of(const struct service *s, const struct config *c)
{
    struct redis_options options = config_redis(c, s->topics.key_prefix);
    options.timeout_ms = REDIS_TIMEOUT_MS;
    return options;
}

/* Connects to nothing: what is wrong with the options is reported at the start. */
static enum err redis_check(const struct service *s, const struct config *c, struct why *why)
{
    const struct redis_options options = redis_options_of(s, c);
    struct redis *redis = NULL;
    enum err err = redis_new(&redis, &options, why);
    redis_free(redis);
    return err;
}

/* On the feed's thread. */
static void allowlist_refused(const struct why *why)
{
    log_warn("allowlist_record_refused", LOG_STR("error", str_of(why->text)));
}

static enum err callback_start(struct service *s, struct daemon_ctx *ctx, struct why *why)
{
    const struct config *c = daemon_config(ctx);
    const struct kafka_options kafka = config_kafka(c, "crcr-ingest");
    enum err err = allowlist_feed_new(&s->feed, &kafka, s->topics.name[TOPIC_ALLOWLIST],
                                      allowlist_refused, daemon_watch(ctx, "allowlist"), why);
    if (err)
        return err;
    const struct callback_options options = {
        .responder = &s->responder,
        .oidc = s->oidc,
        .feed = s->feed,
        .keys = s->keys,
        .redis = redis_options_of(s, c),
        .topic = s->topics.name[TOPIC_CALLBACKS],
        .requests_per_min = config_number(c, "RATE_LIMIT_PER_MIN"),
        .bytes_per_min = CALLBACK_BYTES_PER_MIN,
        .bytes_a_day = config_number(c, "CRCR_CALLBACK_BYTES_DAY"),
        .public_url = config_text(c, "CRCR_PUBLIC_URL"),
    };
    return callback_route_new(&s->callback, &options, why);
}

static enum err http_start(struct service *s, const struct config *c, struct why *why)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    const struct http_server_options options = {
        .listen = config_text(c, "CRCR_LISTEN"),
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = s,
        .refused = on_refused,
        .threads = n < 1                  ? 1
                   : n > MAX_HTTP_THREADS ? MAX_HTTP_THREADS
                                          : (int)n,
        .max_connections_per_address = (int)config_number(c, "CRCR_MAX_CONNECTIONS_PER_ADDRESS"),
        .max_inflight_bytes = (size_t)config_number(c, "CRCR_MAX_INFLIGHT_BYTES"),
    };
    enum err err = http_server_new(&s->server, &options, why);
    if (!err)
        log_info("listening", LOG_STR("on", str_of(options.listen)),
                 LOG_INT("port", http_server_port(s->server)));
    return err;
}

/* Builds everything. The port is open afterwards; until Kafka answers, requests get 503. */
static enum err service_start(struct daemon_ctx *ctx, bool check_only, void **opaque,
                              struct why *why)
{
    const struct config *c = daemon_config(ctx);
    struct service *s = mem_alloc(1, sizeof(*s));
    *opaque = s;
    s->responder.metrics = daemon_metrics(ctx);
    s->webhook.responder = &s->responder;
    enum err err = rules_init(s, c, check_only, why);
    if (!err)
        err = redis_check(s, c, why);
    if (err || check_only)
        return err;
    const struct topic_writer_options writer = { .kafka = config_kafka(c, "crcr-ingest"),
                                                 .own_thread = true };
    err = topic_writer_new(&s->responder.writer, &writer, why);
    if (!err)
        err = callback_start(s, ctx, why);
    return !err ? http_start(s, c, why) : err;
}

/* ---- run --------------------------------------------------------------------------------- */

static void gauges_set(struct service *s)
{
    struct metrics *m = s->responder.metrics;
    metrics_set(m, INGEST_REQUESTS_IN_HAND, NULL, (double)http_server_in_flight(s->server));
    metrics_set(m, INGEST_BYTES_IN_HAND, NULL, (double)atomic_load(&s->responder.bytes_in_hand));
    struct str issuer;
    double age_s;
    for (size_t i = 0; oidc_age(s->oidc, i, &issuer, &age_s); i++)
        metrics_set(m, INGEST_JWKS_AGE, METRIC_LABELS(issuer), age_s);
}

/* Ready: the brokers answer and have our topics. Webhooks need neither Redis nor GitHub nor an
 * allowlist. A topic that is missing at the start ends the role; one that is missing later may be a
 * broker that has just started. ERR_STOP: the producer cannot go on. */
static enum err broker_check(struct service *s, struct role_ctx *role, struct why *why)
{
    if (topic_writer_fatal(s->responder.writer, why))
        return ERR_STOP;
    int64_t now_ms = clock_mono_ms();
    if (now_ms - s->checked_ms < BROKER_CHECK_MS)
        return OK;
    enum err err =
        topic_writer_check(s->responder.writer, s->needed, N_NEEDED, BROKER_WAIT_MS, why);
    s->checked_ms = !err ? now_ms : 0;
    role_ready(role, !err ? NULL : why->text);
    return OK;
}

/* Accepted requests are answered by Kafka's report, or by the deadline. */
static void drain(struct service *s, struct role_ctx *role)
{
    struct wake *wake = role_wake(role);
    role_leave(role, s->server, config_number(role_config(role), "CRCR_SHUTDOWN_DELAY"));
    int64_t until_ms = clock_mono_ms() + DRAIN_MS;
    while (http_server_in_flight(s->server) > 0 && clock_mono_ms() < until_ms) {
        role_alive(role);
        wake_reset(wake);
        wake_wait(wake, 20);
    }
}

/* The one role: watches the broker, keeps the gauges, and drains. */
static enum err service_run(struct role_ctx *role, void *opaque, struct why *why)
{
    struct service *s = opaque;
    struct wake *wake = role_wake(role);
    responder_declare(&s->responder, s->needed, N_WRITTEN);
    enum err err = role_wait_topics(role, s->responder.writer, s->needed, N_NEEDED, why);
    if (err)
        return err;
    while (!role_stopping(role)) {
        wake_reset(wake);
        role_alive(role);
        err = broker_check(s, role, why);
        if (err)
            return err;
        gauges_set(s);
        if (!role_stopping(role))
            wake_wait(wake, 1000);
    }
    drain(s, role);
    return OK;
}

/* ---- stop -------------------------------------------------------------------------------- */

/* Each step may still answer exchanges of the steps before: an exchange outlives its server. */
static void service_stop(void *opaque)
{
    struct service *s = opaque;
    if (!s)
        return;
    http_server_free(s->server, 0);
    callback_route_free(s->callback);
    struct why why;
    if (s->responder.writer && topic_writer_flush(s->responder.writer, 2000, &why))
        log_warn("flush_failed", LOG_STR("reason", str_of(why.text)));
    topic_writer_free(s->responder.writer);
    allowlist_feed_free(s->feed);
    oidc_free(s->oidc);
    callback_keys_free(s->keys);
    signature_secrets_clear(&s->webhook.rules.secrets);
    free(s);
}

/* ---- the program ------------------------------------------------------------------------- */

static const struct role roles[] = {
    { "ingest", "takes webhooks and callbacks, and writes them to Kafka", service_run },
};

static const struct daemon_spec spec = {
    .daemon = DAEMON_INGEST,
    .name = "crcr-ingest",
    .summary =
        "takes GitHub's webhooks and the callbacks of downstream CI, and keeps them in Kafka",
    .admin_default = "127.0.0.1:9101",
    .roles = roles,
    .n_roles = sizeof(roles) / sizeof(roles[0]),
    .families = ingest_metrics,
    .n_families = INGEST_METRICS,
    .start = service_start,
    .stop = service_stop,
};

int main(int argc, char **argv)
{
    return daemon_main(&spec, argc, argv, environ);
}
