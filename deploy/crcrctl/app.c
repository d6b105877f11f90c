/* `crcrctl app create` registers the GitHub App by deploy/github-app/manifest.json, `app check`
 * compares it with that.
 *
 *   browser ─▶ our page on 127.0.0.1 ─ form with the manifest ─▶ GitHub: its owner confirms
 *           ─▶ our /created?code=… ─▶ POST /app-manifests/{code}/conversions ─▶ key, webhook secret
 *
 * https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/crypto/hmac.h"
#include "../../common/io/http_client.h"
#include "../../common/io/http_server.h"
#include "../../common/model/ids.h"
#include "app_api.h"
#include "out.h"
#include "send.h"
#include "verbs.h"

#define TEXT_MAX   (64u << 10)
#define ANSWER_MAX (4u << 20)
#define DRAIN_MS   5000
#define PATH_SIZE  4096
#define HOOK       "/github/webhook"
#define SETTINGS   "the App's settings, "

extern const char embedded_app_manifest[];

/* What GitHub answers, and the file that it becomes, named as by deploy/compose/make-secrets. */
static const struct {
    const char *member, *file;
} secrets[] = { { "pem", "app_private_key" }, { "webhook_secret", "webhook_secret" } };
#define N_SECRETS (sizeof(secrets) / sizeof(*secrets))

struct creating {
    struct buf page;
    char state[33];
    char code[DELIVERY_MAX + 1];
    _Atomic(struct http_exchange *) x; /* the browser that brought the code, once that is set */
};

static void on_page(void *opaque, struct http_exchange *x)
{
    struct creating *c = opaque;
    (void)http_reply(x, 200, "text/html; charset=utf-8", NULL, buf_str(&c->page));
}

/* On the server's only thread. The state shows that it is GitHub's answer to our page. */
static void on_created(void *opaque, struct http_exchange *x)
{
    struct creating *c = opaque;
    struct str code = http_query(x, "code");
    if (!str_is(http_query(x, "state"), c->state) || !delivery_valid(code) || atomic_load(&c->x)) {
        http_reply_error(x, 400, "not GitHub's answer to this page: begin again at /");
        return;
    }
    (void)str_copy(c->code, sizeof(c->code), code);
    atomic_store(&c->x, x);
}

static void put_page(struct creating *c, const struct ctl *ctl, const struct args *args)
{
    struct str web = str_of(config_text(ctl->config, "CRCR_GITHUB_API_URL"));
    struct str rest = str_of(config_text(ctl->config, "UPSTREAM_REPO")), owner;
    json_t *manifest = json_loads(embedded_app_manifest, 0, NULL);
    (void)str_split(&rest, '/', &owner);
    if (args->organization)
        owner = str_of(args->organization);
    json_object_set_new(manifest, "name", json_sprintf("crcr-%.*s", STR_ARG(owner)));
    json_object_set_new(manifest, "url", json_string(args->url));
    json_object_set_new(json_object_get(manifest, "hook_attributes"), "url",
                        json_sprintf("%s" HOOK, args->url));
    json_object_set_new(manifest, "redirect_url",
                        json_sprintf("http://127.0.0.1:%d/created", (int)args->port));
    char *text = json_dumps(manifest, 0);
    json_decref(manifest);
    if (str_is(web, "https://api.github.com"))
        web = STR_LIT("https://github.com");
    web.len -= str_ends(web, "/api/v3") ? strlen("/api/v3") : 0; /* GitHub Enterprise */
    buf_printf(&c->page, "<!doctype html><form method=post action=\"%.*s/", STR_ARG(web));
    if (!args->personal)
        buf_printf(&c->page, "organizations/%.*s/", STR_ARG(owner));
    buf_printf(&c->page, "settings/apps/new?state=%s\"><input type=hidden name=manifest value=\"",
               c->state);
    for (const char *at = text; *at; at++)
        buf_printf(&c->page, strchr("\"&<", *at) ? "&#%d;" : "%c", *at);
    buf_puts(&c->page, "\"><button>Register the App at GitHub</button></form>\n");
    free(text);
}

/* ---- the code becomes files ----------------------------------------------------------------- */

/* Before anybody is asked, since what GitHub gives comes once. */
static enum err files_check(const char *dir, struct why *why)
{
    char path[PATH_SIZE];
    if (access(dir, W_OK))
        return why_set(why, ERR_REFUSE, "--dir %s: %s", dir, strerror(errno));
    for (size_t i = 0; i < N_SECRETS; i++) {
        FORMAT(path, "%s/%s", dir, secrets[i].file);
        if (!access(path, F_OK))
            return why_set(
                why, ERR_REFUSE,
                "%s is there, and nothing is overwritten: move it, or give another --dir", path);
    }
    return OK;
}

static enum err files_write(const char *dir, const json_t *app, struct why *why)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < N_SECRETS; i++) {
        const char *text = json_string_value(json_object_get(app, secrets[i].member));
        FORMAT(path, "%s/%s", dir, secrets[i].file);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        bool written = fd >= 0 && text && dprintf(fd, "%s\n", text) > 0 && !fsync(fd);
        if (fd >= 0)
            close(fd);
        if (!written)
            return why_set(why, ERR_REFUSE, "%s cannot be written: make one on the App's page",
                           path);
    }
    return OK;
}

/* GitHub gives the App's secrets for the code once, within an hour. */
static enum err convert(const struct ctl *ctl, const struct args *args, const char *code,
                        struct why *why)
{
    struct post_answer answer;
    struct headers headers;
    char url[1024];
    FORMAT(url, "%s/app-manifests/%s/conversions", config_text(ctl->config, "CRCR_GITHUB_API_URL"),
           code);
    headers_init(&headers);
    headers_put(&headers, "Accept", STR_LIT("application/vnd.github+json"));
    enum err err = post(ctl, "crcrctl", url, &headers, STR_LIT(""), &answer, why);
    json_t *app = json_loadb(buf_str(&answer.text).ptr, answer.text.len, 0, NULL);
    int64_t id = json_integer_value(json_object_get(app, "id"));
    const char *page = json_string_value(json_object_get(app, "html_url"));
    if (!err && answer.status != 201)
        err = why_set(why, answer.status ? ERR_REFUSE : ERR_UNKNOWN, "POST %s: %d %.*s", url,
                      answer.status, STR_ARG(str_cut(buf_str(&answer.text), 200)));
    if (!err)
        err = files_write(args->dir, app, why);
    if (!err && args->json)
        put_json(NULL, "{id:%" PRId64 " url:%s dir:%s}", id, page, args->dir);
    else if (!err)
        printf("App %" PRId64 " is registered; app_private_key and webhook_secret are in %s\n"
               "next: set GITHUB_APP_ID=%" PRId64 " and give the daemons both files\n"
               "then: install it on %s: %s/installations/new\n"
               "then: crcrctl app check --url %s\n",
               id, args->dir, id, config_text(ctl->config, "UPSTREAM_REPO"), page ? page : "?",
               args->url);
    json_decref(app);
    buf_clear(&answer.text);
    return err;
}

/* ---- app create ----------------------------------------------------------------------------- */

/* Serves the page until the browser comes back, and answers it. */
static enum err serve(const struct ctl *ctl, const struct args *args, struct creating *c,
                      struct why *why)
{
    static const struct http_route routes[] = {
        { .method = "GET", .path = "/", .handle = on_page },
        { .method = "GET", .path = "/created", .handle = on_created },
    };
    struct http_server *server = NULL;
    char listen[32];
    FORMAT(listen, "127.0.0.1:%d", (int)args->port);
    const struct http_server_options options = {
        .listen = listen, .routes = routes, .n_routes = 2, .opaque = c
    };
    enum err err = http_server_new(&server, &options, why);
    if (err)
        return err;
    int64_t end_ms = clock_mono_ms() + args->timeout_ms;
    fprintf(args->json ? stderr : stdout,
            "open http://%s/ in a browser that is logged in at GitHub\n"
            "(on another machine: there first  ssh -L %d:%s HOST, this one)\n",
            listen, (int)args->port, listen);
    fflush(stdout);
    while (!atomic_load(&c->x) && clock_mono_ms() < end_ms && ctl_wait(100))
        ;
    struct http_exchange *x = atomic_load(&c->x);
    err = x ? convert(ctl, args, c->code, why)
            : why_set(why, ERR_RETRY, "nobody came back from GitHub");
    if (x)
        (void)http_reply(x, err ? 502 : 200, "text/plain; charset=utf-8", NULL,
                         str_of(err ? why->text : "Registered. Go on where crcrctl runs."));
    http_server_free(server, DRAIN_MS);
    return err;
}

int verb_app_create(struct ctl *ctl, const struct args *args)
{
    struct creating c = { .page = BUF_INIT(TEXT_MAX) };
    struct why why;
    if (!args->url || http_url_check(args->url, true, &why) || str_ends(str_of(args->url), "/"))
        return ctl_bad(ctl, "--url", args->url ? args->url : "",
                       "where GitHub reaches the proxy of ingest: https://HOST, no slash behind");
    random_hex(c.state, 16);
    put_page(&c, ctl, args);
    ctl_catch_signals();
    enum err err = files_check(args->dir, &why);
    if (!err)
        err = serve(ctl, args, &c, &why);
    buf_clear(&c.page);
    return err ? ctl_fail(ctl, err, &why) : CTL_OK;
}

/* ---- app check ------------------------------------------------------------------------------ */

struct app_check {
    bool json;
    struct buf next, lines; /* what is to be done; a line each */
};

/* todo NULL: it is as it should be. */
static void check_put(struct app_check *c, const char *name, const char *todo, const char *text,
                      struct str rest)
{
    struct buf CLEANUP(buf_clear) said = BUF_INIT(TEXT_MAX);
    buf_printf(&said, "%s%.*s", text, STR_ARG(rest));
    clean_printf(&c->lines, "  %-8s %-12s %s\n", todo ? "MISSING" : "ok", name, said.ptr);
    if (c->json)
        put_json(NULL, "{name:%s ok:%i text:%s todo:%s}", name, !todo, said.ptr, todo);
    if (todo)
        buf_printf(&c->next, "%s %s\n", c->next.len ? "then:" : "next:", todo);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static bool has_event(const json_t *app, const json_t *event)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(app, "events"), i, one)
    {
        if (json_equal(one, event))
            return true;
    }
    return false;
}

static void check_rights(struct app_check *c, const json_t *app, const json_t *manifest)
{
    struct buf CLEANUP(buf_clear) rights = BUF_INIT(TEXT_MAX), events = BUF_INIT(TEXT_MAX);
    json_t *wanted = json_object_get(manifest, "default_permissions"), *value;
    const char *name;
    size_t i;
    json_object_foreach(wanted, name, value)
    {
        const char *has = text_of(json_object_get(app, "permissions"), name);
        if (strcmp(has, "write") != 0 && strcmp(has, json_string_value(value)) != 0)
            buf_printf(&rights, " %s: %s", name, json_string_value(value));
    }
    json_array_foreach(json_object_get(manifest, "default_events"), i, value)
    {
        if (!has_event(app, value))
            buf_printf(&events, " %s", json_string_value(value));
    }
    check_put(c, "permissions",
              rights.len ? SETTINGS
                  "Permissions & events; then each installation's owner accepts it"
                         : NULL,
              rights.len ? "without" : "all", buf_str(&rights));
    check_put(c, "events", events.len ? SETTINGS "Permissions & events, Subscribe to events" : NULL,
              events.len ? "without" : "all", buf_str(&events));
}

static void check_webhook(struct app_check *c, const json_t *hook, const char *host)
{
    const char *url = text_of(hook, "url");
    struct str rest = str_of(url);
    bool here = str_ends(rest, HOOK) &&
                (!host || (str_starts(rest, host) && strlen(host) == rest.len - strlen(HOOK)));
    check_put(c, "webhook",
              !here                       ? SETTINGS "Webhook URL: https://HOST" HOOK
              : !*text_of(hook, "secret") ? SETTINGS "Webhook secret: that of ingest"
                                          : NULL,
              *url ? "" : "no URL", rest);
}

static void check_delivery(struct app_check *c, const json_t *newest)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(TEXT_MAX);
    long long status = json_integer_value(json_object_get(newest, "status_code"));
    buf_printf(&text, ": %s %s %lld %s", text_of(newest, "delivered_at"), text_of(newest, "event"),
               status, text_of(newest, "status"));
    check_put(c, "delivery",
              !newest             ? "save the App's settings: GitHub sends a ping"
              : status == 401     ? "give ingest the App's webhook secret, and restart it"
              : status / 100 != 2 ? "see that GitHub reaches ingest; then crcrctl redeliver"
                                  : NULL,
              newest ? "the last" : "none yet", newest ? buf_str(&text) : STR_NONE);
}

int verb_app_check(struct ctl *ctl, const struct args *args)
{
    static const char *const paths[] = { "/app", "/app/hook/config",
                                         "/app/hook/deliveries?per_page=1" };
    struct app_check c = { args->json, BUF_INIT(TEXT_MAX), BUF_INIT(TEXT_MAX) };
    struct buf CLEANUP(buf_clear) body = BUF_INIT(ANSWER_MAX);
    json_t *manifest = json_loads(embedded_app_manifest, 0, NULL), *got[3] = { NULL };
    struct app_api *api = NULL;
    struct why why;
    ctl_catch_signals();
    enum err err = app_api_new(&api, ctl, &why);
    int code = err ? CTL_USAGE : CTL_UNREACHABLE;
    for (size_t i = 0; !err && i < 3; i++) {
        const struct app_request request = { .path = paths[i] };
        err = app_api_get(api, &request, &body, NULL, &why);
        got[i] = err ? NULL : json_loadb(buf_str(&body).ptr, body.len, 0, NULL);
    }
    if (err) {
        (void)ctl_fail(ctl, err, &why);
    } else {
        check_put(&c, "app", NULL, "", str_of(text_of(got[0], "html_url")));
        check_rights(&c, got[0], manifest);
        check_webhook(&c, got[1], args->url);
        check_delivery(&c, json_array_get(got[2], 0));
        code = c.next.len ? CTL_PROBLEM : CTL_OK;
        if (!args->json) {
            ctl_put(&c.next);
            ctl_put(&c.lines);
        }
    }
    for (size_t i = 0; i < 3; i++)
        json_decref(got[i]);
    json_decref(manifest);
    app_api_free(api);
    buf_clear(&c.lines);
    buf_clear(&c.next);
    return code;
}
