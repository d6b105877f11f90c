/* `crcrctl app check`: the App at GitHub against deploy/github-app/manifest.json. */
#include <jansson.h>
#include <string.h>

#include "app_api.h"
#include "out.h"
#include "verbs.h"

#define ANSWER_MAX (4u << 20)
#define LINES_MAX  (64u << 10)
#define HOOK       "/github/webhook"
#define SETTINGS   "the App's settings, "

extern const char embedded_app_manifest[];

struct app_check {
    bool json;
    struct buf next, lines; /* what is to be done; a line each */
};

/* todo NULL: it is as it should be. */
static void put(struct app_check *c, const char *name, const char *todo, const char *text,
                struct str rest)
{
    struct buf CLEANUP(buf_clear) said = BUF_INIT(LINES_MAX);
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
    struct buf CLEANUP(buf_clear) rights = BUF_INIT(LINES_MAX), events = BUF_INIT(LINES_MAX);
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
    put(c, "permissions",
        rights.len ? SETTINGS "Permissions & events; then each installation's owner accepts it"
                   : NULL,
        rights.len ? "without" : "all", buf_str(&rights));
    put(c, "events", events.len ? SETTINGS "Permissions & events, Subscribe to events" : NULL,
        events.len ? "without" : "all", buf_str(&events));
}

static void check_webhook(struct app_check *c, const json_t *hook, const char *host)
{
    const char *url = text_of(hook, "url");
    struct str rest = str_of(url);
    bool here = str_ends(rest, HOOK) &&
                (!host || (str_starts(rest, host) && strlen(host) == rest.len - strlen(HOOK)));
    put(c, "webhook",
        !here                       ? SETTINGS "Webhook URL: https://HOST" HOOK
        : !*text_of(hook, "secret") ? SETTINGS "Webhook secret: that of ingest"
                                    : NULL,
        *url ? "" : "no URL", rest);
}

static void check_delivery(struct app_check *c, const json_t *newest)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(LINES_MAX);
    long long status = json_integer_value(json_object_get(newest, "status_code"));
    buf_printf(&text, ": %s %s %lld %s", text_of(newest, "delivered_at"), text_of(newest, "event"),
               status, text_of(newest, "status"));
    put(c, "delivery",
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
    struct app_check c = { args->json, BUF_INIT(LINES_MAX), BUF_INIT(LINES_MAX) };
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
        put(&c, "app", NULL, "", str_of(text_of(got[0], "html_url")));
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
