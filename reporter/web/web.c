/* The role web: the HUD pages and their JSON, read from the view. Handlers run on the server's one
 * thread, which alone uses the connection to Redis. */
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/base/log.h"
#include "../../common/io/http_server.h"
#include "../../common/model/ids.h"
#include "../../common/view/epoch.h"
#include "../../common/view/indexes.h"
#include "../../common/view/labels.h"
#include "../reporter.h"
#include "api.h"
#include "pr_list.h"

#define BODY_MAX_BYTES   (16u << 20)
#define SUMMARY_REPOS    500
#define SUMMARY_JOBS     100 /* of each downstream; what its pass rate is taken from */
#define REPO_JOBS        200
#define PR_DELIVERIES    25
#define PR_JOBS          400 /* of each delivery */
#define DELIVERY_JOBS    1000
#define DELIVERY_FULL    100 /* jobs that come with failed tests and verdict */
#define SUMMARY_FRESH_MS 2000
#define DRAIN_MS         5000
#define TICK_MS          1000

#define JS_TYPE "text/javascript; charset=utf-8"

extern const char embedded_index_html[], embedded_style_css[], embedded_main_js[],
    embedded_dom_js[], embedded_values_js[], embedded_home_js[], embedded_repo_js[],
    embedded_delivery_js[], embedded_pr_js[], embedded_prs_js[], embedded_icon_svg[];

/* What the pages are made of; all of it is in the program. */
static const struct {
    const char *path, *type, *text;
} assets[] = {
    { "/assets/icon.svg", "image/svg+xml", embedded_icon_svg },
    { "/assets/style.css", "text/css; charset=utf-8", embedded_style_css },
    { "/assets/main.js", JS_TYPE, embedded_main_js },
    { "/assets/dom.js", JS_TYPE, embedded_dom_js },
    { "/assets/values.js", JS_TYPE, embedded_values_js },
    { "/assets/home.js", JS_TYPE, embedded_home_js },
    { "/assets/repo.js", JS_TYPE, embedded_repo_js },
    { "/assets/delivery.js", JS_TYPE, embedded_delivery_js },
    { "/assets/pr.js", JS_TYPE, embedded_pr_js },
    { "/assets/prs.js", JS_TYPE, embedded_prs_js },
};

struct web {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct buf summary; /* the last one, while fresh */
    int64_t summary_ms; /* monotonic clock */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void reply(struct web *w, struct http_exchange *x, const char *route, int status,
                  const char *type, struct str body)
{
    struct headers h;
    char code[8];
    headers_init(&h);
    headers_put(&h, "Content-Security-Policy",
                STR_LIT("default-src 'none'; script-src 'self'; style-src 'self'; "
                        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
                        "frame-ancestors 'none'"));
    headers_put(&h, "X-Content-Type-Options", STR_LIT("nosniff"));
    headers_put(&h, "Referrer-Policy", STR_LIT("no-referrer"));
    headers_put(&h, "Cross-Origin-Opener-Policy", STR_LIT("same-origin"));
    headers_put(&h, "Cache-Control", STR_LIT("no-cache"));
    snprintf(code, sizeof(code), "%d", status);
    metrics_add(role_metrics(w->role), METRIC_PAGES, METRIC_LABELS(str_of(route), str_of(code)), 1);
    http_reply(x, status, type, &h, body);
}

static void reply_json(struct web *w, struct http_exchange *x, const char *route,
                       const struct buf *body)
{
    if (buf_full(body)) {
        reply(w, x, route, 503, NULL, STR_LIT("{\"detail\":\"the answer is too large\"}"));
        return;
    }
    reply(w, x, route, 200, "application/json; charset=utf-8", buf_str(body));
}

static void reply_not_found(struct web *w, struct http_exchange *x, const char *route)
{
    reply(w, x, route, 404, NULL, STR_LIT("{\"detail\":\"nothing is known of this\"}"));
}

static void reply_unavailable(struct web *w, struct http_exchange *x, const char *route,
                              const struct why *why)
{
    log_warn("page_failed", LOG_STR("route", str_of(route)), LOG_STR("error", str_of(why->text)));
    metrics_set(role_metrics(w->role), METRIC_REDIS_UP, METRIC_LABELS(STR_LIT("web")),
                redis_is_up(w->redis));
    reply(w, x, route, 503, NULL, STR_LIT("{\"detail\":\"the view is unavailable, try again\"}"));
}

/* False when the answer was given: a view that is being rebuilt lacks what it will show again. */
static bool view_is_consistent(struct web *w, struct http_exchange *x, const char *route)
{
    struct why why;
    int64_t epoch = 0;
    if (view_epoch_get(w->redis, &epoch, &why))
        reply_unavailable(w, x, route, &why);
    else if (epoch == 0)
        reply(w, x, route, 503, NULL,
              STR_LIT("{\"detail\":\"the view is being rebuilt, try again\"}"));
    return epoch != 0;
}

/* ---- the pages ------------------------------------------------------------------------------- */

/* One document for all: which page it is, its script reads from the path. */
static void page(void *opaque, struct http_exchange *x)
{
    reply(opaque, x, "page", 200, "text/html; charset=utf-8", str_of(embedded_index_html));
}

static void asset(void *opaque, struct http_exchange *x)
{
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++)
        if (str_is(http_path(x), assets[i].path)) {
            reply(opaque, x, "asset", 200, assets[i].type, str_of(assets[i].text));
            return;
        }
    reply_not_found(opaque, x, "asset");
}

/* ---- /api/crcr/summary ------------------------------------------------------------------------
 */

static void repo_put(const struct allowlist_version *version, struct str repo,
                     const struct job_list *jobs, struct buf *to)
{
    const struct allowlist_entry *entry =
        version->list ? allowlist_find(version->list, repo) : NULL;
    api_put_repo(to, repo, entry, allowlist_version_demotion(version, repo), jobs->at, jobs->n);
}

static bool is_indexed(const struct view_index *active, struct str repo)
{
    for (size_t i = 0; i < active->n; i++)
        if (str_eq_nocase(str_of(active->at[i].name), repo))
            return true;
    return false;
}

/* Those that did something last come first, then those that are only listed. */
static enum err repos_put(struct web *w, const struct allowlist_version *version, struct buf *to,
                          struct why *why)
{
    static const struct job_list none = { NULL, 0 };
    struct view_index CLEANUP(view_index_clear) active = { NULL, 0 };
    enum err err = repos_by_activity(w->redis, SUMMARY_REPOS, &active, why);
    for (size_t i = 0; !err && i < active.n; i++) {
        struct str repo = str_of(active.at[i].name);
        struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
        err = jobs_of_repo(w->redis, repo, SUMMARY_JOBS, &jobs, why);
        if (!err)
            repo_put(version, repo, &jobs, to);
    }
    size_t n = version->list ? allowlist_size(version->list) : 0;
    for (size_t i = 0; !err && i < n && active.n + i < SUMMARY_REPOS; i++) {
        struct str repo = allowlist_at(version->list, i)->repo;
        if (!is_indexed(&active, repo))
            repo_put(version, repo, &none, to);
    }
    return err;
}

static enum err summary_put(struct web *w, struct buf *to, struct why *why)
{
    char error[ALLOWLIST_NOTE_MAX];
    enum err err = allowlist_note_error(w->redis, error, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    buf_putc(to, '{');
    json_put_time(to, "generated_at", clock_wall_ms());
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    buf_puts(to, ",\"allowlist\":{");
    json_put_text(to, "sha", *version->sha ? str_of(version->sha) : STR_NONE);
    json_put_text(to, "source", *version->source ? str_of(version->source) : STR_NONE);
    json_put_time(to, "fetched_at", version->fetched_ms);
    json_put_text(to, "error", *error ? str_of(error) : STR_NONE);
    buf_puts(to, "},\"repos\":[");
    err = repos_put(w, version, to, why);
    allowlist_feed_release(w->reporter->feed, version);
    buf_puts(to, "]}");
    return err;
}

static void summary(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    struct why why;
    int64_t now = clock_mono_ms();
    if (!view_is_consistent(w, x, "summary"))
        return;
    if (w->summary.len == 0 || now - w->summary_ms >= SUMMARY_FRESH_MS) {
        buf_reset(&w->summary);
        if (summary_put(w, &w->summary, &why)) {
            buf_reset(&w->summary);
            reply_unavailable(w, x, "summary", &why);
            return;
        }
        w->summary_ms = now;
    }
    reply_json(w, x, "summary", &w->summary);
}

/* ---- one downstream, one delivery, one pull request -------------------------------------------
 */

/* One of them: its id is what the path has behind the prefix. */
struct view_page {
    const char *route, *prefix;
    bool (*valid)(struct str id);
    /* *known: something is there. */
    enum err (*put)(struct web *w, struct str id, struct buf *to, bool *known, struct why *why);
};

static void view_page_answer(struct web *w, struct http_exchange *x, const struct view_page *page)
{
    struct str id = str_from(http_path(x), str_of(page->prefix).len);
    struct buf CLEANUP(buf_clear) body;
    struct why why;
    bool known = false;
    buf_init(&body, BODY_MAX_BYTES);
    if (!page->valid(id))
        reply_not_found(w, x, page->route);
    else if (!view_is_consistent(w, x, page->route))
        return;
    else if (page->put(w, id, &body, &known, &why))
        reply_unavailable(w, x, page->route, &why);
    else if (!known)
        reply_not_found(w, x, page->route);
    else
        reply_json(w, x, page->route, &body);
}

static enum err repo_page_put(struct web *w, struct str repo, struct buf *to, bool *known,
                              struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    enum err err = jobs_of_repo(w->redis, repo, REPO_JOBS, &jobs, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    *known = (version->list && allowlist_find(version->list, repo)) || jobs.n > 0;
    buf_puts(to, "{\"downstream\":");
    const struct job_list scored = { jobs.at, jobs.n < SUMMARY_JOBS ? jobs.n : SUMMARY_JOBS };
    repo_put(version, repo, &scored, to);
    allowlist_feed_release(w->reporter->feed, version);
    json_put_name(to, "more_jobs");
    buf_puts(to, jobs.n >= REPO_JOBS ? "true" : "false");
    json_put_name(to, "jobs");
    api_put_jobs(to, jobs.at, jobs.n);
    buf_putc(to, '}');
    return OK;
}

static void repo_page(void *opaque, struct http_exchange *x)
{
    static const struct view_page page = { "repo", "/api/crcr/repos/", repo_valid, repo_page_put };
    view_page_answer(opaque, x, &page);
}

/* limit and full_max as jobs_of_delivery. */
static enum err delivery_put(struct web *w, struct str id, size_t limit, size_t full_max,
                             struct buf *to, bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    size_t n = 0;
    enum commit_seen seen = COMMIT_UNKNOWN;
    enum err err = jobs_of_delivery(w->redis, id, limit, full_max, &jobs, why);
    /* A nightly or periodic run names the commit itself, as its delivery. */
    if (!err && jobs.n > 0 && result_record_is_self(&jobs.at[0]) && sha_valid(id))
        err = commit_seen_get(w->redis, id, &seen, why);
    if (!err)
        err = dispatches_of_delivery(w->redis, id, limit, &dispatches, &n, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    const struct api_delivery delivery = { .id = id,
                                           .jobs = jobs.at,
                                           .n_jobs = jobs.n,
                                           .dispatches = dispatches,
                                           .n_dispatches = n,
                                           .commit = seen,
                                           .more_jobs = jobs.n >= limit,
                                           .version = version };
    *known = jobs.n + n > 0;
    api_put_delivery(to, &delivery);
    allowlist_feed_release(w->reporter->feed, version);
    free(dispatches);
    return OK;
}

static enum err delivery_page_put(struct web *w, struct str id, struct buf *to, bool *known,
                                  struct why *why)
{
    return delivery_put(w, id, DELIVERY_JOBS, DELIVERY_FULL, to, known, why);
}

static void delivery_page(void *opaque, struct http_exchange *x)
{
    static const struct view_page page = { "delivery", "/api/crcr/deliveries/", delivery_valid,
                                           delivery_page_put };
    view_page_answer(opaque, x, &page);
}

/* 0: it is none. */
static int64_t pr_number(struct str id)
{
    uint64_t pr;
    return str_to_u64(id, &pr) && pr <= INT32_MAX ? (int64_t)pr : 0;
}

static bool pr_valid(struct str id)
{
    return pr_number(id) > 0;
}

static enum err pr_page_put(struct web *w, struct str id, struct buf *to, bool *known,
                            struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct buf CLEANUP(buf_clear) labels;
    int64_t pr = pr_number(id);
    buf_init(&labels, 8192);
    enum err err = deliveries_of_pr(w->redis, pr, PR_DELIVERIES, &deliveries, why);
    if (!err)
        err = labels_get(w->redis, pr, &labels, why);
    if (err)
        return err;
    struct str rest = buf_str(&labels), line;
    *known = deliveries.n > 0;
    buf_putc(to, '{');
    json_put_number(to, "pr_number", pr);
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    buf_puts(to, ",\"labels\":[");
    while (str_split(&rest, '\n', &line)) {
        json_put_comma(to);
        json_text_put(to, line);
    }
    buf_puts(to, "],\"deliveries\":[");
    for (size_t i = 0; !err && i < deliveries.n; i++) {
        bool ignored;
        err = delivery_put(w, str_of(deliveries.at[i].name), PR_JOBS, 0, to, &ignored, why);
    }
    buf_puts(to, "]}");
    return err;
}

static void pr_list(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    struct pr_query query = { .text = http_query(x, "q") };
    struct buf CLEANUP(buf_clear) body;
    struct why why;
    buf_init(&body, BODY_MAX_BYTES);
    if (!str_to_i64(http_query(x, "before"), &query.before_ms))
        query.before_ms = 0;
    if (!view_is_consistent(w, x, "prs"))
        return;
    if (pr_list_put(w->redis, &query, &body, &why))
        reply_unavailable(w, x, "prs", &why);
    else
        reply_json(w, x, "prs", &body);
}

static void pr_page(void *opaque, struct http_exchange *x)
{
    static const struct view_page page = { "pr", "/api/crcr/prs/", pr_valid, pr_page_put };
    view_page_answer(opaque, x, &page);
}

/* ---- the role -------------------------------------------------------------------------------- */

static const struct http_route routes[] = {
    { .method = "GET", .path = "/", .handle = page },
    { .method = "GET", .path = "/prs", .handle = page },
    { .method = "GET", .path = "/pr/*", .handle = page },
    { .method = "GET", .path = "/delivery/*", .handle = page },
    { .method = "GET", .path = "/repo/*", .handle = page },
    { .method = "GET", .path = "/assets/*", .handle = asset },
    { .method = "GET", .path = "/api/crcr/summary", .handle = summary },
    { .method = "GET", .path = "/api/crcr/repos/*", .handle = repo_page },
    { .method = "GET", .path = "/api/crcr/prs", .handle = pr_list },
    { .method = "GET", .path = "/api/crcr/prs/*", .handle = pr_page },
    { .method = "GET", .path = "/api/crcr/deliveries/*", .handle = delivery_page },
};

enum err web_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct web w = { .reporter = reporter, .role = role };
    struct http_server *server = NULL;
    const struct http_server_options options = {
        .listen = config_text(role_config(role), "CRCR_HUD_LISTEN"),
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = &w,
        .threads = 1,
        .max_connections = 1000,
    };
    buf_init(&w.summary, BODY_MAX_BYTES);
    enum err err = redis_new(&w.redis, &w.reporter->redis, why);
    if (!err)
        err = http_server_new(&server, &options, why);
    if (!err) {
        log_info("listening", LOG_STR("role", STR_LIT("web")),
                 LOG_INT("port", http_server_port(server)));
        role_ready(role, NULL);
        role_waiting(role, true); /* there is no lag to work off */
    }
    while (!err && !role_stopping(role))
        reporter_tick(role, TICK_MS);
    if (!err)
        role_leave(role, server, config_number(role_config(role), "CRCR_SHUTDOWN_DELAY"));
    http_server_free(server, DRAIN_MS);
    redis_free(w.redis);
    buf_clear(&w.summary);
    return err;
}
