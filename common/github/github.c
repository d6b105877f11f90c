#include "github.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/url.h"
#include "../model/ids.h"
#include "../model/json_member.h"
#include "app_token.h"

/* One github_start. waiting: for a token, in tokens' hands; else the request is in http_client's.
 */
struct call {
    struct call *prev, *next;
    struct github *g; /* NULL: given up, free it when the http_client lets go */
    struct github_request request;
    char *path, *repo, *etag, *downstream; /* what request points to */
    bool waiting;
    bool inside;     /* counted in flight */
    bool refreshed;  /* 401 was answered with a new token once */
    int64_t paid_ms; /* monotonic: when its budget was taken */
    char *token;     /* that the request went out with */
    struct app_token_waiter waiter;
    github_answered_fn *done;
    void *opaque;
};

struct github {
    struct api api;
    char *url;
    struct app_jwt jwt;
    struct app_tokens *tokens;
    struct gate *own; /* NULL: it is another's */
    struct gate_user gate;
    struct github_answer refused; /* the last github_start, known to fail; err OK: it was not */
    struct call *calls;
    bool closing;
};

enum err github_new(struct github **ret, const struct github_options *options, struct why *why)
{
    struct str id = str_of(options->app_id);
    char shown[300];
    if (!options->api_url || !*options->api_url || str_ends(str_of(options->api_url), "/"))
        return why_set(why, ERR_REFUSE,
                       "GitHub API URL \"%s\": accepted is a URL without a slash "
                       "at the end",
                       url_shown(shown, sizeof(shown), str_of(options->api_url)).ptr);
    for (size_t i = 0; i < id.len; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-", id.ptr[i]))
            id.len = 0;
    if (!id.len || id.len > 100)
        return why_set(why, ERR_REFUSE,
                       "GitHub App id \"%s\": accepted is the App's number or "
                       "client id",
                       options->app_id ? options->app_id : "");
    struct github *g = mem_alloc(1, sizeof(*g));
    g->url = mem_dup(options->api_url);
    g->api = (struct api){ g->url, options->client };
    app_jwt_init(&g->jwt, options->app_id, options->key);
    if (!options->gate)
        g->own = gate_new(NULL);
    g->gate = (struct gate_user){ .gate = g->own ? g->own : options->gate,
                                  .redis = options->redis,
                                  .class = options->class };
    g->tokens = app_tokens_new(&g->api, &g->jwt, &g->gate);
    *ret = g;
    return OK;
}

static void call_leave(struct call *c, struct github *g)
{
    if (c->inside)
        gate_leave(&g->gate, c->request.repo);
    c->inside = false;
}

static void call_free(struct call *c)
{
    free(c->path);
    free(c->repo);
    free(c->etag);
    free(c->downstream);
    mem_free_secret(c->token);
    free(c);
}

void github_free(struct github *g)
{
    static const struct github_answer gone = { .err = ERR_UNKNOWN,
                                               .budget_left = -1,
                                               .reason = "given up: the program is stopping" };
    static const struct github_answer unsent = { .err = ERR_RETRY,
                                                 .budget_left = -1,
                                                 .reason = "not sent: the program is stopping" };
    struct call *c, *next;
    if (!g)
        return;
    g->closing = true; /* those that are answered may want to go on */
    DL_FOREACH_SAFE(g->calls, c, next)
    {
        DL_DELETE(g->calls, c);
        call_leave(c, g);
        c->g = NULL;
        c->done(c->opaque, c->waiting ? &unsent : &gone);
        if (!c->waiting)
            continue; /* call_answered frees it */
        app_token_unwait(g->tokens, &c->waiter);
        call_free(c);
    }
    app_tokens_free(g->tokens);
    app_jwt_clear(&g->jwt);
    gate_free(g->own);
    free(g->url);
    free(g);
}

const char *github_app_id(const struct github *g)
{
    return g->jwt.app_id;
}

bool github_holds(struct github *g, const struct gate_call *call, struct github_answer *ret)
{
    return (call->kind == BUDGET_DISPATCH &&
            app_token_blocked(g->tokens, call->repo, GITHUB_CONTENTS_WRITE, ret)) ||
           gate_holds(&g->gate, call, ret);
}

bool github_reserve(struct github *g, struct str repo)
{
    return gate_reserve(&g->gate, repo);
}

void github_unreserve(struct github *g, struct str repo)
{
    gate_leave(&g->gate, repo);
}

bool github_bill(struct github *g, struct str repo, struct gate_bill *ret,
                 struct github_answer *refused)
{
    const struct gate_call call = { .repo = repo, .kind = BUDGET_DISPATCH, .inside = true };
    return !app_token_blocked(g->tokens, repo, GITHUB_CONTENTS_WRITE, refused) &&
           gate_bill(&g->gate, &call, ret, refused);
}

bool github_paid(struct github *g, const struct gate_bill *bill, const struct budget_answer *answer,
                 struct github_answer *refused)
{
    return gate_paid(&g->gate, bill, answer, refused);
}

struct github_answer github_unsent(struct github *g, enum err err, const struct why *why)
{
    struct github_answer answer = g->refused; /* asked again it might just have run out */
    if (answer.err != err)
        answer = (struct github_answer){ .err = err, .budget_left = -1, .reason = why->text };
    return answer;
}

void github_report(struct github *g, struct metrics *m, const struct budget_families *to,
                   struct str who)
{
    gate_report(&g->gate, m, to, who);
}

static void call_finish(struct call *c, const struct github_answer *answer)
{
    DL_DELETE(c->g->calls, c);
    call_leave(c, c->g);
    c->done(c->opaque, answer);
    call_free(c);
}

static github_answered_fn call_answered;

/* Through the gate; the App's own calls are not the installation's. paid: its cost was taken. */
static bool enter(struct call *c, bool paid, struct github_answer *refused)
{
    const struct github_request *r = &c->request;
    const struct gate_call call = {
        .repo = r->repo,
        .downstream = r->downstream,
        .pr = r->pr,
        .kind = r->creates_next ? BUDGET_SEARCH : budget_call_of(r->method, r->path),
        .class = r->class,
        .inside = c->inside,
        .paid = paid,
    };
    c->paid_ms = clock_mono_ms();
    if (r->auth == GITHUB_AS_APP)
        return true;
    bool may = gate_enter(&c->g->gate, &call, refused);
    c->inside |= may;
    return may;
}

/* token is copied. */
static enum err call_send(struct call *c, const char *token, struct why *why)
{
    const struct github_request *r = &c->request;
    free(c->token);
    c->token = mem_dup(token);
    enum err err =
        r->make_body ? r->make_body(r->make_opaque, clock_wall_ms(), &c->request.body, why) : OK;
    return err ? err : api_call_start(&c->g->api, r, c->token, call_answered, c, why);
}

static void token_came(struct app_token_waiter *w, const char *token,
                       const struct github_answer *failure)
{
    struct call *c = w->opaque;
    struct why why;
    struct github_answer refused;
    c->waiting = false;
    if (token && clock_mono_ms() - c->paid_ms > BUDGET_TOKEN_WAIT_MS &&
        !enter(c, false, &refused)) {
        token = NULL; /* what was taken when the wait began has lapsed */
        failure = &refused;
    }
    enum err err = token ? call_send(c, token, &why) : OK;
    const struct github_answer unsent = { .err = err, .budget_left = -1, .reason = why.text };
    if (err || !token)
        call_finish(c, err ? &unsent : failure);
}

/* Sends the call as soon as there is something to sign it with. */
static enum err call_begin(struct call *c, struct why *why)
{
    const char *token;
    if (c->request.auth == GITHUB_AS_APP) {
        enum err err = app_jwt_get(&c->g->jwt, &token, why);
        return err ? err : call_send(c, token, why);
    }
    token = app_token_cached(c->g->tokens, c->request.repo, c->request.permission);
    if (token)
        return call_send(c, token, why);
    c->waiter = (struct app_token_waiter){ .done = token_came,
                                           .repo = c->request.repo,
                                           .permission = c->request.permission,
                                           .opaque = c };
    c->waiting = true;
    enum err err = app_token_wait(c->g->tokens, &c->waiter, why);
    if (err)
        c->waiting = false;
    return err;
}

/* GitHub did not take what we signed with: once more with something new. */
static bool refresh(struct call *c)
{
    struct why why;
    struct github_answer refused;
    if (c->refreshed || !enter(c, false, &refused))
        return false;
    c->refreshed = true;
    if (c->request.auth == GITHUB_AS_APP)
        app_jwt_drop(&c->g->jwt);
    else
        app_token_drop(c->g->tokens, c->request.repo, c->request.permission, c->token);
    return !call_begin(c, &why);
}

static void call_answered(void *opaque, const struct github_answer *answer)
{
    struct call *c = opaque;
    struct github_answer seen = *answer;
    if (!c->g) {
        call_free(c);
        return;
    }
    if (answer->status == 401 && refresh(c))
        return;
    gate_answered(&c->g->gate, c->request.auth == GITHUB_AS_APP ? STR_NONE : c->request.repo,
                  &seen);
    call_finish(c, &seen);
}

/* Fails at once what is known to fail. */
static enum err check(struct github *g, const struct github_request *request, struct why *why)
{
    if (g->closing)
        return why_set(why, ERR_RETRY, "not sent: the program is stopping");
    if (request->path[0] != '/')
        return why_set(why, ERR_REFUSE, "API path \"%s\" does not begin with a slash",
                       request->path);
    if (request->auth == GITHUB_AS_APP)
        return OK;
    if (!repo_valid(request->repo))
        return why_set(why, ERR_REFUSE, "\"%.*s\" is not owner/repo", STR_ARG(request->repo));
    if (app_token_blocked(g->tokens, request->repo, request->permission, &g->refused))
        return why_set(why, g->refused.err, "%s", g->refused.reason);
    return OK;
}

enum err github_start(struct github *g, const struct github_request *request,
                      github_answered_fn *done, void *opaque, struct why *why)
{
    g->refused.err = OK;
    enum err err = check(g, request, why);
    if (err) {
        if (request->inside)
            gate_leave(&g->gate, request->repo);
        return err;
    }
    struct call *c = mem_alloc(1, sizeof(*c));
    c->g = g;
    c->request = *request;
    c->request.path = c->path = mem_dup(request->path);
    c->repo = str_dup(request->repo);
    c->request.repo = str_of(c->repo);
    c->etag = str_dup(request->etag);
    c->request.etag = str_of(c->etag);
    if (request->downstream.ptr) {
        c->downstream = str_dup(request->downstream);
        c->request.downstream = str_of(c->downstream);
    }
    c->done = done;
    c->opaque = opaque;
    c->inside = request->inside;
    err = enter(c, request->paid, &g->refused)
              ? call_begin(c, why)
              : why_set(why, g->refused.err, "%s", g->refused.reason);
    if (err) {
        call_leave(c, g);
        call_free(c);
    } else
        DL_APPEND(g->calls, c);
    return err;
}

/* ---- what answers with an id ---- */

struct writing {
    struct buf body;
    const char *what;
    github_written_fn *done;
    void *opaque;
};

static void writing_free(struct writing *w)
{
    buf_clear(&w->body);
    free(w);
}

static void written(void *opaque, const struct github_answer *answer)
{
    struct writing *w = opaque;
    struct github_answer seen = *answer;
    char reason[128];
    int64_t id = 0;
    if (!seen.err) {
        json_t *document = json_document(seen.body, NULL);
        id = json_integer_value(json_object_get(document, "id"));
        json_decref(document);
    }
    if (!seen.err && id <= 0) {
        snprintf(reason, sizeof(reason),
                 "GitHub's answer is not the %s that its documentation promises", w->what);
        seen.err = ERR_UNKNOWN;
        seen.reason = reason;
    }
    w->done(w->opaque, &seen, seen.err ? 0 : id);
    writing_free(w);
}

enum err github_write(struct github *g, const struct github_request *request, struct buf *body,
                      const char *what, github_written_fn *done, void *opaque, struct why *why)
{
    struct writing *w = mem_alloc(1, sizeof(*w));
    struct github_request with_body = *request;
    *w = (struct writing){ .body = *body, .what = what, .done = done, .opaque = opaque };
    *body = (struct buf){ 0 };
    with_body.body = buf_str(&w->body);
    enum err err = buf_full(&w->body) ? why_set(why, ERR_REFUSE, "the %s's text is too large", what)
                                      : github_start(g, &with_body, written, w, why);
    if (err)
        writing_free(w);
    return err;
}
