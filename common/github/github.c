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
#include "budget_payer.h"

/* One github_start. waiting: for a token, in tokens' hands; else the request is in http_client's.
 */
struct call {
    struct call *prev, *next;
    struct github *g; /* NULL: given up, free it when the http_client lets go */
    struct github_request request;
    char *path, *repo, *etag, *downstream; /* what request points to */
    bool waiting;
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
    struct budget_payer payer;
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
    g->tokens = app_tokens_new(&g->api, &g->jwt);
    g->payer = (struct budget_payer){ .budget = options->budget,
                                      .redis = options->redis,
                                      .class = options->class };
    *ret = g;
    return OK;
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
        c->g = NULL;
        c->done(c->opaque, c->waiting ? &unsent : &gone);
        if (!c->waiting)
            continue; /* call_answered frees it */
        app_token_unwait(g->tokens, &c->waiter);
        call_free(c);
    }
    app_tokens_free(g->tokens);
    app_jwt_clear(&g->jwt);
    free(g->url);
    free(g);
}

const char *github_app_id(const struct github *g)
{
    return g->jwt.app_id;
}

bool github_blocked(struct github *g, struct str repo, struct github_answer *ret)
{
    return app_token_blocked(g->tokens, repo, GITHUB_CONTENTS_WRITE, ret);
}

bool github_held(struct github *g, struct str repo, struct str downstream, int64_t pr,
                 enum budget_call call, enum budget_class class, struct github_answer *ret)
{
    return budget_held(&g->payer, repo, downstream, pr, call, class, ret);
}

bool github_bill(struct github *g, struct str repo, struct github_bill *ret,
                 struct github_answer *refused)
{
    return budget_bill(&g->payer, repo, ret, refused);
}

struct github_answer github_unsent(struct github *g, enum err err, const struct why *why)
{
    struct github_answer answer = g->refused; /* asked again it might just have run out */
    if (answer.err != err)
        answer = (struct github_answer){ .err = err, .budget_left = -1, .reason = why->text };
    return answer;
}

void github_report_budget(struct github *g, struct metrics *m, const struct budget_families *to,
                          struct str who)
{
    int64_t left = app_tokens_least_left(g->tokens);
    if (left >= 0)
        metrics_set(m, to->github, METRIC_LABELS(who), (double)left);
    budget_report(&g->payer, m, to);
}

static void call_finish(struct call *c, const struct github_answer *answer)
{
    DL_DELETE(c->g->calls, c);
    c->done(c->opaque, answer);
    call_free(c);
}

static github_answered_fn call_answered;

/* It may be a limit of GitHub's that another thread or replica met. */
static void heard_of(struct github *g, struct str repo, struct github_answer *refused)
{
    if (!refused->ours)
        app_token_answered(g->tokens, repo, refused);
}

/* The App's own calls are not the installation's. */
static bool pay(struct call *c, struct github_answer *refused)
{
    c->paid_ms = clock_mono_ms();
    if (c->request.auth == GITHUB_AS_APP || budget_pay(&c->g->payer, &c->request, refused))
        return true;
    heard_of(c->g, c->request.repo, refused);
    return false;
}

bool github_bill_answered(struct github *g, const struct github_bill *bill,
                          const struct budget_answer *answer, struct github_answer *refused)
{
    if (budget_bill_answered(&g->payer, bill, answer, refused))
        return true;
    heard_of(g, bill->shared.downstream, refused);
    return false;
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
    if (token && clock_mono_ms() - c->paid_ms > BUDGET_TOKEN_WAIT_MS && !pay(c, &refused)) {
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
    if (c->refreshed || !pay(c, &refused))
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
    if (c->request.auth == GITHUB_AS_INSTALLATION) {
        app_token_answered(c->g->tokens, c->request.repo, &seen);
        budget_saw(&c->g->payer, c->request.repo, &seen);
    }
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
    if (err)
        return err;
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
    c->paid_ms = clock_mono_ms();
    err = request->paid || pay(c, &g->refused)
              ? call_begin(c, why)
              : why_set(why, g->refused.err, "%s", g->refused.reason);
    if (err)
        call_free(c);
    else
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
