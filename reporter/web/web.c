/* The role web: the HUD pages and their JSON. Handlers run on the server's one thread and never
 * wait: an answer of the JSON API comes out of the cache, or from the thread that renders (live.h).
 */
#include "web.h"

#include <stdio.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "live.h"

#define DRAIN_MS        5000
#define TICK_MS         1000
#define ANSWER_MS       12000 /* the pages give up after 15 s */
#define MAX_CONNECTIONS 3000  /* 2,000 may wait for a change */
#define CACHE_BYTES     (32u << 20)
#define CACHE_PAGES     1000

#define JS_TYPE "text/javascript; charset=utf-8"

extern const char embedded_index_html[], embedded_style_css[], embedded_main_js[],
    embedded_dom_js[], embedded_values_js[], embedded_home_js[], embedded_repo_js[],
    embedded_delivery_js[], embedded_pr_js[], embedded_prs_js[], embedded_live_js[],
    embedded_level_js[], embedded_since_js[], embedded_matrix_js[], embedded_timeline_js[],
    embedded_metrics_js[], embedded_charts_js[], embedded_chart_min_js[], embedded_icon_svg[],
    embedded_health_js[], embedded_pipeline_js[], embedded_openapi_json[];

/* What the pages are made of; all of it is in the program. */
static const struct {
    const char *path, *type, *text;
} assets[] = {
    { "/assets/icon.svg", SVG_TYPE, embedded_icon_svg },
    { "/assets/style.css", "text/css; charset=utf-8", embedded_style_css },
    { "/assets/main.js", JS_TYPE, embedded_main_js },
    { "/assets/dom.js", JS_TYPE, embedded_dom_js },
    { "/assets/values.js", JS_TYPE, embedded_values_js },
    { "/assets/live.js", JS_TYPE, embedded_live_js },
    { "/assets/home.js", JS_TYPE, embedded_home_js },
    { "/assets/repo.js", JS_TYPE, embedded_repo_js },
    { "/assets/level.js", JS_TYPE, embedded_level_js },
    { "/assets/matrix.js", JS_TYPE, embedded_matrix_js },
    { "/assets/since.js", JS_TYPE, embedded_since_js },
    { "/assets/timeline.js", JS_TYPE, embedded_timeline_js },
    { "/assets/delivery.js", JS_TYPE, embedded_delivery_js },
    { "/assets/pr.js", JS_TYPE, embedded_pr_js },
    { "/assets/prs.js", JS_TYPE, embedded_prs_js },
    { "/assets/health.js", JS_TYPE, embedded_health_js },
    { "/assets/pipeline.js", JS_TYPE, embedded_pipeline_js },
    { "/assets/metrics.js", JS_TYPE, embedded_metrics_js },
    { "/assets/charts.js", JS_TYPE, embedded_charts_js },
    { "/assets/chart.js", JS_TYPE, embedded_chart_min_js }, /* Chart.js, of the build's machine */
};

#define ASSETS (sizeof(assets) / sizeof(assets[0]))

struct web {
    struct web_view view;
    char etags[ASSETS][PAGE_ETAG_SIZE]; /* of assets */
    struct role_ctx *role;
    struct page_cache *cache;
    struct live *live;
};

/* ---- answers --------------------------------------------------------------------------------- */

void web_reply(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
               const char *type, const char *etag, struct str body)
{
    struct headers h;
    char code[8], quoted[PAGE_ETAG_SIZE + 2];
    headers_init(&h);
    headers_put(&h, "Content-Security-Policy",
                STR_LIT("default-src 'none'; script-src 'self'; style-src 'self'; "
                        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
                        "frame-ancestors 'none'"));
    headers_put(&h, "X-Content-Type-Options", STR_LIT("nosniff"));
    headers_put(&h, "Referrer-Policy", STR_LIT("no-referrer"));
    headers_put(&h, "Cross-Origin-Opener-Policy", STR_LIT("same-origin"));
    headers_put(&h, "Cache-Control", STR_LIT("no-cache"));
    if (etag) {
        snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
        headers_put(&h, "ETag", str_of(quoted));
    }
    snprintf(code, sizeof(code), "%d", status);
    metrics_add(role_metrics(role), METRIC_PAGES, METRIC_LABELS(str_of(route), str_of(code)), 1);
    http_reply(x, status, type, &h, body);
}

void web_reply_page(struct role_ctx *role, struct http_exchange *x, const struct api_path *path,
                    const struct page *page)
{
    const char *route = path->name;
    struct str body = { page->body, page->len };
    if (page->status == 503)
        web_reply(role, x, route, 503, NULL, NULL, body);
    else if (page_is_known(page->etag, http_header(x, "If-None-Match")))
        web_reply(role, x, route, 304, NULL, page->etag, STR_LIT(""));
    else
        web_reply(role, x, route, page->status,
                  path->type ? path->type : "application/json; charset=utf-8", page->etag, body);
}

static void reply(struct web *w, struct http_exchange *x, const char *route, const char *type,
                  const char *text)
{
    web_reply(w->role, x, route, 200, type, NULL, str_of(text));
}

static void reply_no_path(struct web *w, struct http_exchange *x, const char *route)
{
    web_reply(w->role, x, route, 404, NULL, NULL, STR_LIT("{\"detail\":\"no such path\"}"));
}

/* ---- the pages ------------------------------------------------------------------------------- */

/* One document for all: which page it is, its script reads from the path. */
static void page(void *opaque, struct http_exchange *x)
{
    reply(opaque, x, "page", "text/html; charset=utf-8", embedded_index_html);
}

static void asset(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    for (size_t i = 0; i < ASSETS; i++) {
        if (!str_is(http_path(x), assets[i].path))
            continue;
        bool known = page_is_known(w->etags[i], http_header(x, "If-None-Match"));
        web_reply(w->role, x, "asset", known ? 304 : 200, assets[i].type, w->etags[i],
                  known ? STR_LIT("") : str_of(assets[i].text));
        return;
    }
    reply_no_path(w, x, "asset");
}

/* ---- the JSON API ---------------------------------------------------------------------------- */

static void openapi(void *opaque, struct http_exchange *x)
{
    reply(opaque, x, "openapi", "application/json; charset=utf-8", embedded_openapi_json);
}

/* What is of the last 2 s comes out of the cache, whoever asks. */
static void api(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    struct path_ask ask;
    struct page cached = { .status = 0 };
    struct headers query;
    int64_t since_ms = clock_mono_ms() - LIVE_FRESH_MS;
    http_queries(x, &query);
    if (!path_ask_init(&ask, http_path(x), &query)) {
        reply_no_path(w, x, "api");
        return;
    }
    struct str known = http_header(x, "If-None-Match");
    bool found = page_cache_get(w->cache, ask.key, since_ms, known, &cached);
    if (found && cached.at_ms >= since_ms && (cached.body || page_is_known(cached.etag, known))) {
        web_reply_page(w->role, x, ask.path, &cached);
        path_ask_clear(&ask);
    } else
        live_ask(w->live, x, &ask);
    page_clear(&cached);
}

/* A page, or the badge behind it. */
static void repo(void *opaque, struct http_exchange *x)
{
    if (str_ends(http_path(x), "/badge.svg"))
        api(opaque, x);
    else
        page(opaque, x);
}

/* When the answer to another path changes. */
static void live(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    struct path_ask ask;
    if (path_ask_parse(&ask, http_query(x, "of")))
        live_wait(w->live, x, &ask);
    else
        reply_no_path(w, x, "live");
}

/* ---- the role -------------------------------------------------------------------------------- */

static const struct http_route routes[] = {
    { .method = "GET", .path = "/", .handle = page },
    { .method = "GET", .path = "/prs", .handle = page },
    { .method = "GET", .path = "/pr/*", .handle = page },
    { .method = "GET", .path = "/delivery/*", .handle = page },
    { .method = "GET", .path = "/repo/*", .handle = repo },
    { .method = "GET", .path = "/pipeline", .handle = page },
    { .method = "GET", .path = "/metrics-board", .handle = page },
    { .method = "GET", .path = "/assets/*", .handle = asset },
    { .method = "GET", .path = "/api/crcr/openapi.json", .handle = openapi },
    { .method = "GET", .path = "/api/crcr/live", .handle = live },
    { .method = "GET", .path = "/api/crcr/*", .handle = api, .deadline_ms = ANSWER_MS },
};

enum err web_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct web w = { .view = { .reporter = reporter }, .role = role };
    struct http_server *server = NULL;
    const struct http_server_options options = {
        .listen = config_text(role_config(role), "CRCR_HUD_LISTEN"),
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = &w,
        .threads = 1,
        .max_connections = MAX_CONNECTIONS,
    };
    for (size_t i = 0; i < ASSETS; i++)
        page_etag(w.etags[i], str_of(assets[i].text));
    w.cache = page_cache_new(CACHE_BYTES, CACHE_PAGES);
    enum err err = redis_new(&w.view.redis, &w.view.reporter->redis, why);
    if (!err)
        err = pipeline_new(&w.view.pipeline, w.view.reporter, role, why);
    if (!err)
        err = live_new(&w.live, &w.view, w.cache, role, why);
    if (!err)
        err = http_server_new(&server, &options, why);
    if (!err) {
        log_info("listening", LOG_STR("role", STR_LIT("web")),
                 LOG_INT("port", http_server_port(server)));
        role_ready(role, NULL);
        role_waiting(role, true); /* there is no lag to work off */
        pipeline_run(w.view.pipeline);
        live_leave(w.live);
        role_leave(role, server, config_number(role_config(role), "CRCR_SHUTDOWN_DELAY"));
    }
    http_server_free(server, DRAIN_MS);
    live_free(w.live);
    pipeline_free(w.view.pipeline);
    redis_free(w.view.redis);
    page_cache_free(w.cache);
    return err;
}
