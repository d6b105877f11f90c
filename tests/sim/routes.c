#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "app.h"
#include "buttons.h"
#include "checks.h"
#include "comments.h"
#include "commits.h"
#include "contents.h"
#include "control.h"
#include "dispatches.h"
#include "hook_deliveries.h"
#include "hud.h"
#include "manifests.h"
#include "oidc.h"
#include "pulls.h"
#include "reaction.h"
#include "record.h"
#include "script.h"
#include "sim.h"
#include "timers.h"

/* https://docs.github.com/en/rest/authentication/permissions-required-for-github-apps
 * A star stands for one segment, two stars for the rest of the path. After /repos/ the first two
 * are the repository; the others become call->part. */
static const struct route {
    const char *method;
    const char *pattern;
    enum auth auth;
    bool body; /* must be a JSON object */
    handler_fn *handle;
    const char *permission; /* of AUTH_INSTALLATION; "write" allows to read, too */
} routes[] = {
    { "GET", "/app", AUTH_APP, false, app_get, NULL },
    { "GET", "/repos/*/*/installation", AUTH_APP, false, app_installation_get, NULL },
    { "POST", "/app/installations/*/access_tokens", AUTH_APP, false, app_token_create, NULL },
    { "POST", "/app-manifests/*/conversions", AUTH_NONE, false, manifests_convert, NULL },
    { "GET", "/app/hook/config", AUTH_APP, false, manifests_hook, NULL },
    { "GET", "/app/hook/deliveries", AUTH_APP, false, deliveries_list, NULL },
    { "GET", "/app/hook/deliveries/*", AUTH_APP, false, deliveries_get, NULL },
    { "POST", "/app/hook/deliveries/*/attempts", AUTH_APP, false, deliveries_attempt, NULL },
    { "POST", "/repos/*/*/dispatches", AUTH_INSTALLATION, true, dispatches_create,
      "contents:write" },
    { "POST", "/repos/*/*/check-runs", AUTH_INSTALLATION, true, checks_create, "checks:write" },
    { "GET", "/repos/*/*/check-runs/*", AUTH_INSTALLATION, false, checks_get, "checks:read" },
    { "PATCH", "/repos/*/*/check-runs/*", AUTH_INSTALLATION, true, checks_update, "checks:write" },
    { "GET", "/repos/*/*/commits/*/check-runs", AUTH_INSTALLATION, false, checks_of_commit,
      "checks:read" },
    { "GET", "/repos/*/*/check-suites/*", AUTH_INSTALLATION, false, suites_get, "checks:read" },
    { "GET", "/repos/*/*/check-suites/*/check-runs", AUTH_INSTALLATION, false, checks_of_suite,
      "checks:read" },
    { "GET", "/repos/*/*/actions/runs/*", AUTH_INSTALLATION, false, runs_get, "actions:read" },
    { "POST", "/repos/*/*/actions/runs/*/rerun", AUTH_INSTALLATION, false, runs_rerun,
      "actions:write" },
    { "POST", "/repos/*/*/actions/runs/*/rerun-failed-jobs", AUTH_INSTALLATION, false,
      runs_rerun_failed, "actions:write" },
    { "POST", "/repos/*/*/actions/runs/*/cancel", AUTH_INSTALLATION, false, runs_cancel,
      "actions:write" },
    { "GET", "/repos/*/*/contents/**", AUTH_INSTALLATION, false, contents_get, "contents:read" },
    { "GET", "/repos/*/*/commits/**", AUTH_INSTALLATION, false, commits_get, "contents:read" },
    { "GET", "/repos/*/*/issues/*/comments", AUTH_INSTALLATION, false, comments_list,
      "pull_requests:read" },
    { "POST", "/repos/*/*/issues/*/comments", AUTH_INSTALLATION, true, comments_create,
      "pull_requests:write" },
    { "PATCH", "/repos/*/*/issues/comments/*", AUTH_INSTALLATION, true, comments_update,
      "pull_requests:write" },
    { "GET", "/repos/*/*/pulls/*", AUTH_INSTALLATION, false, pulls_get, "pull_requests:read" },
    { "GET", "/.well-known/jwks", AUTH_NONE, false, oidc_jwks_get, NULL },
    { "GET", "/.well-known/openid-configuration", AUTH_NONE, false, oidc_configuration_get, NULL },
    { "POST", "/crcr/results", AUTH_NONE, true, hud_post, NULL },
    { "GET", "/_sim/requests", AUTH_NONE, false, control_requests, NULL },
    { "GET", "/_sim/state", AUTH_NONE, false, control_state, NULL },
    { "POST", "/_sim/script", AUTH_NONE, false, control_script, NULL },
    { "POST", "/_sim/downstreams", AUTH_NONE, false, control_downstreams, NULL },
    { "POST", "/_sim/comments", AUTH_NONE, true, comments_put, NULL },
    { "POST", "/_sim/app_keys", AUTH_NONE, true, app_keys_put, NULL },
    { "POST", "/_sim/manifest", AUTH_NONE, true, manifests_confirm, NULL },
    { "POST", "/_sim/reset", AUTH_NONE, false, control_reset, NULL },
    { "POST", "/_sim/oidc", AUTH_NONE, true, oidc_token_create, NULL },
    { "POST", "/_sim/webhook", AUTH_NONE, true, deliveries_create, NULL },
    { "POST", "/_sim/pulls", AUTH_NONE, true, pulls_put, NULL },
    { "POST", "/_sim/rerequest", AUTH_NONE, true, buttons_rerequest, NULL },
    { "POST", "/_sim/check_runs", AUTH_NONE, false, buttons_check_runs, NULL },
};

/* ---- finding the route ------------------------------------------------------------------------
 */

/* What is left of a path, without the slash that it begins with. */
static struct str rest_of(struct str path)
{
    return str_starts(path, "/") ? str_from(path, 1) : path;
}

static bool pattern_matches(const char *pattern, struct str path, struct str stars[CALL_PARTS + 2],
                            size_t *n_stars)
{
    struct str wanted = rest_of(str_of(pattern)), left = rest_of(path), want, part;

    *n_stars = 0;
    while (str_split(&wanted, '/', &want)) {
        if (str_is(want, "**") && left.len) {
            stars[(*n_stars)++] = left;
            return true;
        }
        if (!str_split(&left, '/', &part) || !part.len)
            return false;
        if (str_is(want, "*"))
            stars[(*n_stars)++] = part;
        else if (!str_eq(want, part))
            return false;
    }
    return left.len == 0;
}

static const struct route *route_find(struct call *call)
{
    struct str stars[CALL_PARTS + 2];
    size_t n, first;

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct route *route = &routes[i];

        if (!str_is(call->method, route->method) ||
            !pattern_matches(route->pattern, call->path, stars, &n))
            continue;
        first = call->repo.ptr ? 2 : 0;
        for (size_t k = first; k < n; k++)
            call->part[k - first] = stars[k];
        return route;
    }
    return NULL;
}

/* /repos/<owner>/<name>/…: also for paths without a route, as rules may name the repository. */
static void repo_find(struct call *call)
{
    struct str rest = call->path, part;

    if (!str_starts(rest, "/repos/"))
        return;
    rest = str_from(rest, sizeof("/repos/") - 1);
    call->repo.ptr = rest.ptr;
    str_split(&rest, '/', &call->owner);
    str_split(&rest, '/', &part);
    call->name = part;
    call->repo.len = (size_t)(part.ptr + part.len - call->repo.ptr);
}

/* ---- the usual answer -------------------------------------------------------------------------
 */

static void route_answer(struct sim *sim, struct call *call, struct reply *reply)
{
    const struct route *route = route_find(call);
    char id[33];

    random_hex(id, 16);
    reply_header(reply, "x-github-request-id", "%s", id);
    if (!route) {
        reply_error(reply, 404, "Not Found");
        return;
    }
    if (route->auth != AUTH_NONE && !headers_get(call->headers, "user-agent").len) {
        reply_error(reply, 403,
                    "Request forbidden by administrative rules. Please make sure your "
                    "request has a User-Agent header");
        return;
    }
    if (!app_authorise(sim->app, route->auth, route->permission, call, reply) ||
        !app_budget(sim->app, call, reply) || !app_content(sim->app, call, reply))
        return;
    if (route->body && !json_is_object(call->body)) {
        reply_error(reply, 400, "Problems parsing JSON");
        return;
    }
    route->handle(sim, call, reply);
}

/* ---- one request ------------------------------------------------------------------------------
 */

/* A request and the answer that it will get, perhaps later. */
struct pending {
    struct http_exchange *x;
    struct reply reply;
    bool close; /* without an answer */
};

static void pending_send(void *opaque)
{
    struct pending *p = opaque;
    struct headers headers;
    const char *name;
    json_t *value;
    char *dumped = NULL;
    struct str body = { p->reply.text, p->reply.text_len };

    headers_init(&headers);
    json_object_foreach(p->reply.headers, name, value)
    {
        headers_put(&headers, name, str_of(json_string_value(value)));
    }
    if (p->reply.body) {
        dumped = json_dumps(p->reply.body, JSON_COMPACT | JSON_ENCODE_ANY);
        body = str_of(dumped);
    }
    if (p->close)
        http_abort(p->x);
    else
        http_reply(p->x, p->reply.status, p->reply.content_type, &headers, body);
    free(dumped);
    reply_clear(&p->reply);
    free(p);
}

static void call_init(struct call *call, const struct http_exchange *x, struct headers *headers,
                      struct headers *query)
{
    http_headers(x, headers);
    http_queries(x, query);
    *call = (struct call){ .method = http_method(x),
                           .path = http_path(x),
                           .headers = headers,
                           .query = query,
                           .text = http_body(x),
                           .now_ms = http_received_ms(x) };
    if (call->text.len)
        call->body = json_loadb(call->text.ptr, call->text.len, JSON_REJECT_DUPLICATES, NULL);
    repo_find(call);
}

/* What a rule says, over the usual answer. */
static void rule_apply(const struct rule_action *action, struct reply *reply)
{
    const char *name;
    json_t *value;

    if (action->status && json_is_string(action->body)) {
        const char *text = json_string_value(action->body);

        reply_text(reply, action->status, "text/plain; charset=utf-8", mem_dup(text),
                   json_string_length(action->body));
    } else if (action->status && action->body) {
        reply_json(reply, action->status, json_incref(action->body));
    } else if (action->status >= 400) {
        reply_error(reply, action->status, "Scripted");
    } else if (action->status) {
        reply_empty(reply, action->status);
    }
    json_object_foreach(action->headers, name, value)
    {
        json_object_set(reply->headers, name, value);
    }
}

static int64_t scripted(struct sim *sim, struct call *call, struct pending *p)
{
    const struct rule_action *action =
        script_take(sim->script, call->method, call->path, call->repo);
    struct record_outcome outcome = { 0 };

    if (!action || !rule_replaces(action))
        route_answer(sim, call, &p->reply);
    if (action) {
        rule_apply(action, &p->reply);
        p->close = action->reset || action->hang;
        outcome.fault = action->hang ? "hang" : action->reset ? "reset" : NULL;
        outcome.delay_ms = action->delay_ms + (action->hang ? action->hang_ms : 0);
    }
    outcome.status = p->close ? 0 : p->reply.status;
    record_add(sim->record, call, &outcome);
    return outcome.delay_ms;
}

void sim_handle(struct sim *sim, struct http_exchange *x)
{
    struct pending *p = mem_alloc(1, sizeof(*p));
    struct headers headers, query;
    struct call call;
    int64_t delay_ms = 0;

    p->x = x;
    reply_init(&p->reply);
    call_init(&call, x, &headers, &query);
    if (str_starts(call.path, "/_sim/"))
        route_answer(sim, &call, &p->reply);
    else
        delay_ms = scripted(sim, &call, p);
    json_decref(call.body);
    if (delay_ms)
        timers_add(sim->timers, delay_ms, pending_send, pending_send, p);
    else
        pending_send(p);
}
