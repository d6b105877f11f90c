/* The role web: the HUD pages and their JSON. Handlers run on the server's one thread and never
 * wait: an answer of the JSON API comes out of the cache, or from the thread that renders (live.h).
 */
#include "web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/log.h"
#include "../../common/base/mem.h"
#include "gzip.h"
#include "live.h"
#include "web_files.h"

#define DRAIN_MS        5000
#define TICK_MS         1000
#define MAX_CONNECTIONS 3000 /* 2,000 may wait for a change */

#define JSON_TYPE "application/json; charset=utf-8"

static const struct {
    const char *ending, *type;
} types[] = {
    { ".js", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".html", "text/html; charset=utf-8" },
    { ".json", JSON_TYPE },
    { ".svg", SVG_TYPE },
};

struct web {
    struct web_view view;
    struct page *files; /* as web_files has them */
    struct role_ctx *role;
    struct live *live;
};

/* ---- answers --------------------------------------------------------------------------------- */

/* page NULL: sends a copy of body. Else sends the page, compressed if the client accepts that (with
 * another ETag), or 304 if the client has it. No ETag when status is not the page's. */
static void request_answer(struct role_ctx *role, struct http_exchange *x, const char *route,
                           int status, const char *type, struct str body, struct page *page)
{
    struct headers h;
    char etag[PAGE_ETAG_SIZE + sizeof("\"-gzip\"")];
    bool packed = page && page->gzip.ptr && gzip_accepted(http_header(x, "Accept-Encoding"));
    headers_init(&h);
    headers_put(&h, "Content-Security-Policy",
                STR_LIT("default-src 'none'; script-src 'self'; style-src 'self'; "
                        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
                        "frame-ancestors 'none'"));
    headers_put(&h, "X-Content-Type-Options", STR_LIT("nosniff"));
    headers_put(&h, "Referrer-Policy", STR_LIT("no-referrer"));
    headers_put(&h, "Cross-Origin-Opener-Policy", STR_LIT("same-origin"));
    headers_put(&h, "Cache-Control",
                page && page->is_final ? STR_LIT("public, max-age=31536000, immutable")
                                       : STR_LIT("no-cache"));
    if (page)
        headers_put(&h, "Vary", STR_LIT("Accept-Encoding"));
    if (page && status == page->status) {
        snprintf(etag, sizeof(etag), "\"%s%s\"", page->etag, packed ? "-gzip" : "");
        headers_put(&h, "ETag", str_of(etag));
        if (page_is_known(etag, http_header(x, "If-None-Match"))) {
            page = NULL;
            body = STR_LIT("");
            status = 304;
        }
    }
    if (page && packed) {
        headers_put(&h, "Content-Encoding", STR_LIT("gzip"));
        body = page->gzip;
    }
    bool in_time = page ? http_reply_lent(x, status, type, &h, body, page_release, page_hold(page))
                        : http_reply(x, status, type, &h, body);
    metrics_add(role_metrics(role), METRIC_PAGES,
                METRIC_LABELS(str_of(route), STR_NUMBER(in_time ? status : 503)), 1);
}

void web_reply(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
               const char *type, struct str body)
{
    request_answer(role, x, route, status, type, body, NULL);
}

void web_reply_page(struct role_ctx *role, struct http_exchange *x, const char *route,
                    const char *type, struct page *page)
{
    if (page->status == 503)
        web_reply(role, x, route, 503, NULL, page->body);
    else
        request_answer(role, x, route, page->status, type ? type : JSON_TYPE, page->body, page);
}

void web_reply_error(struct role_ctx *role, struct http_exchange *x, const char *route, int status,
                     const char *detail)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"detail\":\"%s\"}", detail);
    web_reply(role, x, route, status, NULL, str_of(body));
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static const char *type_of(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (str_ends(str_of(name), types[i].ending))
            return types[i].type;
    return NULL;
}

static void reply_file(struct web *w, struct http_exchange *x, const char *route, struct str name,
                       int status)
{
    for (size_t i = 0; web_files[i].name; i++) {
        struct page *page = &w->files[i];
        const char *type = type_of(web_files[i].name);
        if (str_is(name, web_files[i].name)) {
            request_answer(w->role, x, route, status, type, page->body, page);
            return;
        }
    }
    web_reply_error(w->role, x, route, 404, "no such path");
}

static void openapi(void *opaque, struct http_exchange *x)
{
    reply_file(opaque, x, "openapi", STR_LIT("/openapi.json"), 200);
}

static void live(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    live_wait(w->live, x);
}

/* All pages are one document: its script reads from the path which page it is, and says so if there
 * is none. */
static void request_get(void *opaque, struct http_exchange *x)
{
    struct web *w = opaque;
    struct path_ask ask;
    struct headers query;
    struct str path = http_path(x);
    http_queries(x, &query);
    bool is_path = path_ask_init(&ask, path, &query);
    if (is_path && ask.fault)
        web_reply_error(w->role, x, ask.path->name, 400, ask.fault);
    else if (is_path)
        live_ask(w->live, x, &ask);
    else if (str_starts(path, "/assets/"))
        reply_file(w, x, "asset", path, 200);
    else if (path_is_page(path))
        reply_file(w, x, "page", STR_LIT("/index.html"), 200);
    else if (!str_starts(path, "/api/") &&
             str_find_str(http_header(x, "Accept"), STR_LIT("text/html")) >= 0)
        reply_file(w, x, "none", STR_LIT("/index.html"), 404);
    else
        web_reply_error(w->role, x, "none", 404, "no such path");
}

static const struct http_route routes[] = {
    { .method = "GET", .path = "/api/crcr/openapi.json", .handle = openapi },
    { .method = "GET", .path = "/api/crcr/live", .handle = live },
    { .method = "GET", .path = "/*", .handle = request_get, .deadline_ms = ANSWER_MS },
};

/* ---- the role -------------------------------------------------------------------------------- */

enum err web_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct web w = { .view = { .reporter = reporter, .lists = lists_new() }, .role = role };
    struct http_server *server = NULL;
    const struct http_server_options options = {
        .listen = config_text(role_config(role), "CRCR_HUD_LISTEN"),
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = &w,
        .threads = 1,
        .max_connections = MAX_CONNECTIONS,
    };
    size_t n_files = 0;
    for (; web_files[n_files].name; n_files++) {
        struct str gzip = web_files[n_files].gzip;
        w.files = mem_resize(w.files, n_files + 1, sizeof(*w.files));
        w.files[n_files] = (struct page){
            .refs = 1,
            .status = 200,
            .is_final = str_starts(str_of(web_files[n_files].name), "/assets/"),
            .body = gzip_unpack(gzip),
            .gzip = gzip,
        };
        page_etag(w.files[n_files].etag, w.files[n_files].body);
    }
    enum err err = redis_new(&w.view.redis, &w.view.reporter->redis, why);
    if (!err)
        err = pipeline_new(&w.view.pipeline, w.view.reporter, role, why);
    if (!err)
        err = live_new(&w.live, &w.view, role, why);
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
    lists_free(w.view.lists);
    redis_free(w.view.redis);
    while (n_files)
        free((char *)(uintptr_t)w.files[--n_files].body.ptr);
    free(w.files);
    return err;
}
