#include "app_token.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../model/limits.h"

#define TOKEN_LIFE_MS       3600000 /* GitHub: "expires one hour from the time you create them" */
#define TOKEN_RENEW_MS      (5 * 60000) /* before its end */
#define TOKEN_LAST_MS       30000       /* an old one is still used this long before its end */
#define LIMIT_FIRST_WAIT_MS 60000       /* first wait after a limit that names no time */
#define LIMIT_DOUBLINGS     4           /* doublings: 1, 2, 4, 8, 16 minutes */
#define ANSWER_MAX_BYTES    65536
#define REFUSED_MS          60000 /* a refusal is believed for so long */
#define FAILED_MS           5000  /* and any other failure */
#define REFUSALS_MAX        1000

/* The installation for one owner. */
struct account {
    UT_hash_handle hh;
    char owner[REPO_MAX + 1]; /* lower case */
    struct app_tokens *tokens;
    int64_t installation; /* 0: not known */
    char *token;
    int64_t token_end_ms; /* monotonic, as is the next */
    int64_t limited_until_ms;
    int limits_in_row;
    int64_t left, limit, reset_ms; /* GitHub's last numbers; reset_ms 0: none yet */
    bool found_again;              /* the id was looked up anew in this round */
    struct app_token_waiter *waiters;
    struct lookup *lookup; /* under way, or NULL */
};

/* A request under way; outlives the account when the cache is freed before the http_client. */
struct lookup {
    struct account *account; /* NULL: nobody waits any more */
    bool of_token;           /* else of the installation's id */
    char repo[REPO_MAX + 1]; /* whose installation is looked for */
};

/* A look-up that failed a moment ago, so that the next calls do not repeat it at once. After a
 * refusal calls wait, which spends no attempt, and then GitHub is asked again: an App may have been
 * installed, or an account no longer be suspended. */
struct refusal {
    UT_hash_handle hh;
    char name[REPO_MAX + 1]; /* lower case: a repo whose installation was looked up, or an owner
                                whose token was asked for */
    int64_t until_ms;        /* monotonic */
    enum err err;
    int status;
    char reason[512];
};

struct app_tokens {
    struct api api;
    struct app_jwt *jwt; /* borrowed */
    struct account *accounts;
    struct refusal *refusals; /* oldest first */
};

struct app_tokens *app_tokens_new(const struct api *api, struct app_jwt *jwt)
{
    struct app_tokens *t = mem_alloc(1, sizeof(*t));
    t->api = *api;
    t->jwt = jwt;
    return t;
}

static void refusal_forget(struct app_tokens *t, struct refusal *r)
{
    HASH_DEL(t->refusals, r);
    free(r);
}

void app_tokens_free(struct app_tokens *t)
{
    struct account *a, *a_next;
    if (!t)
        return;
    HASH_ITER(hh, t->accounts, a, a_next)
    {
        if (a->lookup)
            a->lookup->account = NULL;
        HASH_DEL(t->accounts, a);
        free(a->token);
        free(a);
    }
    while (t->refusals)
        refusal_forget(t, t->refusals);
    free(t);
}

/* ---- what failed a moment ago ---- */

/* NULL when there is none, or none that is believed still. */
static struct refusal *refusal_find(struct app_tokens *t, struct str name)
{
    char lower[REPO_MAX + 1];
    struct refusal *r;
    str_lower(lower, sizeof(lower), name);
    HASH_FIND_STR(t->refusals, lower, r);
    if (r && r->until_ms <= clock_mono_ms()) {
        refusal_forget(t, r);
        return NULL;
    }
    return r;
}

/* Gives until when it is believed. */
static int64_t refusal_remember(struct app_tokens *t, struct str name,
                                const struct github_answer *failure)
{
    struct refusal *r = refusal_find(t, name);
    if (r)
        refusal_forget(t, r);
    if (HASH_COUNT(t->refusals) >= REFUSALS_MAX)
        refusal_forget(t, t->refusals);
    r = mem_alloc(1, sizeof(*r));
    str_lower(r->name, sizeof(r->name), name);
    r->err = failure->err;
    r->status = failure->status;
    r->until_ms = clock_mono_ms() + (failure->err == ERR_REFUSE ? REFUSED_MS : FAILED_MS);
    str_copy(r->reason, sizeof(r->reason), str_of(failure->reason));
    HASH_ADD_STR(t->refusals, name, r);
    return r->until_ms;
}

/* ---- accounts ---- */

static struct account *account_of(struct app_tokens *t, struct str repo)
{
    char owner[REPO_MAX + 1];
    struct account *a;
    ptrdiff_t slash = str_find(repo, '/');
    if (slash >= 0)
        repo.len = (size_t)slash;
    if (!str_lower(owner, sizeof(owner), repo))
        owner[0] = 0; /* no repo of GitHub's is that long */
    HASH_FIND_STR(t->accounts, owner, a);
    if (a)
        return a;
    a = mem_alloc(1, sizeof(*a));
    memcpy(a->owner, owner, sizeof(owner));
    a->tokens = t;
    HASH_ADD_STR(t->accounts, owner, a);
    return a;
}

bool app_token_blocked(struct app_tokens *t, struct str repo, struct github_answer *ret)
{
    const struct account *a = account_of(t, repo);
    if (a->limited_until_ms > clock_mono_ms()) {
        *ret = (struct github_answer){
            .err = ERR_RETRY,
            .limited = true,
            .names_wait = true,
            .wait_until_ms = a->limited_until_ms,
            .budget_left = -1,
            .reason = "a rate limit of GitHub's holds for this installation",
        };
        return true;
    }
    const struct refusal *r = refusal_find(t, str_of(a->owner));
    if (!r)
        r = refusal_find(t, repo);
    if (!r)
        return false;
    *ret = (struct github_answer){
        .err = r->err, .status = r->status, .budget_left = -1, .reason = r->reason
    };
    if (r->err == ERR_REFUSE) { /* GitHub was not asked for this call */
        ret->err = ERR_RETRY;
        ret->limited = true;
        ret->wait_until_ms = r->until_ms;
    }
    return true;
}

/* Where GitHub did not say until when, each limit in a row doubles the wait. */
static void account_answered(struct account *a, struct github_answer *answer)
{
    if (!answer->limited) {
        if (!answer->err)
            a->limits_in_row = 0;
        return;
    }
    int64_t now = clock_mono_ms();
    if (!answer->names_wait && a->limited_until_ms <= now) {
        answer->wait_until_ms = now + ((int64_t)LIMIT_FIRST_WAIT_MS << a->limits_in_row);
        if (a->limits_in_row < LIMIT_DOUBLINGS)
            a->limits_in_row++;
    }
    if (answer->wait_until_ms < a->limited_until_ms) /* several calls were under way */
        answer->wait_until_ms = a->limited_until_ms;
    a->limited_until_ms = answer->wait_until_ms;
}

void app_token_answered(struct app_tokens *t, struct str repo, struct github_answer *answer)
{
    struct account *a = account_of(t, repo);
    account_answered(a, answer);
    if (answer->budget_left < 0 || !answer->budget_reset_ms)
        return;
    a->left = answer->budget_left;
    a->limit = answer->budget_limit;
    a->reset_ms = answer->budget_reset_ms;
}

int64_t app_tokens_least_left(const struct app_tokens *t)
{
    int64_t least = -1, now_ms = clock_mono_ms();
    for (const struct account *a = t->accounts; a; a = a->hh.next) {
        int64_t left = a->reset_ms <= now_ms && a->limit > 0 ? a->limit : a->left;
        if (a->reset_ms && (least < 0 || left < least))
            least = left;
    }
    return least;
}

/* ---- access tokens ---- */

static bool token_good(const struct account *a, int64_t before_end_ms)
{
    return a->token && clock_mono_ms() < a->token_end_ms - before_end_ms;
}

const char *app_token_cached(struct app_tokens *t, struct str repo)
{
    const struct account *a = account_of(t, repo);
    return token_good(a, TOKEN_RENEW_MS) ? a->token : NULL;
}

void app_token_drop(struct app_tokens *t, struct str repo, const char *token)
{
    struct account *a = account_of(t, repo);
    if (a->token && strcmp(a->token, token) == 0) {
        free(a->token);
        a->token = NULL;
    }
}

/* Answers the waiters of that repo; of all repos when it is absent. */
static void release(struct account *a, struct str repo, const struct github_answer *failure)
{
    struct app_token_waiter *w, *next, *ready = NULL;
    DL_FOREACH_SAFE(a->waiters, w, next)
    {
        if (repo.ptr && !str_eq_nocase(w->repo, repo))
            continue;
        DL_DELETE(a->waiters, w);
        DL_APPEND(ready, w);
    }
    const char *token = failure ? NULL : a->token;
    DL_FOREACH_SAFE(ready, w, next)
    {
        DL_DELETE(ready, w);
        w->prev = w->next = NULL;
        w->done(w, token, failure);
    }
}

/* The look-up for that repo, or for all of the account's when it is absent, failed. It may have
 * worked where no answer was seen; but the call that waited for it was surely not made. */
static void fail(struct account *a, struct str repo, const struct github_answer *answer)
{
    struct github_answer failure = *answer;
    failure.sent_ms = 0;
    if (failure.err == ERR_UNKNOWN)
        failure.err = ERR_RETRY;
    account_answered(a, &failure);
    if (!failure.limited) {
        int64_t until_ms =
            refusal_remember(a->tokens, repo.ptr ? repo : str_of(a->owner), &failure);
        if (failure.err == ERR_REFUSE) {
            failure.no_token = true;
            failure.wait_until_ms = until_ms;
        }
    }
    release(a, repo, &failure);
}

static bool id_read(struct str body, int64_t *id)
{
    json_t *document = json_loadb(body.ptr ? body.ptr : "", body.len, 0, NULL);
    *id = json_integer_value(json_object_get(document, "id"));
    json_decref(document);
    return *id > 0;
}

static bool token_read(struct account *a, struct str body)
{
    json_t *document = json_loadb(body.ptr ? body.ptr : "", body.len, 0, NULL);
    const char *token = json_string_value(json_object_get(document, "token"));
    const char *end = json_string_value(json_object_get(document, "expires_at"));
    int64_t end_ms;
    bool good = token && *token && !clock_parse(str_of(end), &end_ms, NULL);
    if (good) {
        free(a->token);
        a->token = mem_dup(token);
        /* On the monotonic clock: how long it lives is known when it comes. A clock that is wrong
         * just then makes it live no longer than GitHub's tokens do. */
        int64_t left_ms = end_ms - clock_wall_ms();
        a->token_end_ms = clock_mono_ms() + (left_ms < TOKEN_LIFE_MS ? left_ms : TOKEN_LIFE_MS);
    }
    json_decref(document);
    return good;
}

static enum err advance(struct account *a, struct why *why) MUST_CHECK;

/* The next step for those who still wait; they get an answer when it cannot even be started. */
static void go_on(struct account *a)
{
    struct why why;
    enum err err = advance(a, &why);
    if (err) {
        struct github_answer failure = { .err = err, .budget_left = -1, .reason = why.text };
        fail(a, STR_NONE, &failure);
    }
}

static const struct github_answer garbage = {
    .err = ERR_RETRY,
    .status = 200,
    .budget_left = -1,
    .reason = "GitHub's answer about the installation cannot be read",
};

static void found(struct account *a, struct str repo, const struct github_answer *answer)
{
    if (!answer->err) {
        go_on(a);
    } else if (answer->err == ERR_REFUSE) {
        /* Another repo of this owner may still be one that the App is installed on. */
        fail(a, repo, answer);
        go_on(a);
    } else {
        fail(a, STR_NONE, answer);
    }
}

static void minted(struct account *a, const struct github_answer *answer)
{
    if (!answer->err) {
        a->found_again = false;
        release(a, STR_NONE, NULL);
    } else if (answer->status == 404 && !a->found_again) {
        a->found_again = true; /* removed and installed again: it has another id now */
        a->installation = 0;
        go_on(a);
    } else if (answer->err != ERR_REFUSE && token_good(a, TOKEN_LAST_MS)) {
        release(a, STR_NONE, NULL);
    } else {
        a->found_again = false;
        fail(a, STR_NONE, answer);
    }
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct lookup *l = opaque;
    struct account *a = l->account;
    if (!a) {
        free(l);
        return;
    }
    a->lookup = NULL;
    if (answer->status == 401)
        app_jwt_drop(a->tokens->jwt);
    if (!answer->err &&
        !(l->of_token ? token_read(a, answer->body) : id_read(answer->body, &a->installation)))
        answer = &garbage;
    if (l->of_token)
        minted(a, answer);
    else
        found(a, str_of(l->repo), answer);
    free(l);
}

/* Starts the request that brings those who wait nearer to a token, unless one is under way. */
static enum err advance(struct account *a, struct why *why)
{
    if (a->lookup || !a->waiters)
        return OK;
    const char *jwt;
    char path[REPO_MAX + 80];
    enum err err = app_jwt_get(a->tokens->jwt, &jwt, why);
    if (err)
        return err;
    struct lookup *l = mem_alloc(1, sizeof(*l));
    l->account = a;
    l->of_token = a->installation != 0;
    str_copy(l->repo, sizeof(l->repo), a->waiters->repo);
    if (l->of_token)
        snprintf(path, sizeof(path), "/app/installations/%" PRId64 "/access_tokens",
                 a->installation);
    else
        snprintf(path, sizeof(path), "/repos/%s/installation", l->repo);
    const struct github_request request = {
        .method = l->of_token ? "POST" : "GET",
        .repo = str_of(l->repo),
        .path = path,
        .max_body_bytes = ANSWER_MAX_BYTES,
    };
    err = api_call_start(&a->tokens->api, &request, jwt, answered, l, why);
    if (err)
        free(l);
    else
        a->lookup = l;
    return err;
}

enum err app_token_wait(struct app_tokens *t, struct app_token_waiter *w, struct why *why)
{
    struct account *a = account_of(t, w->repo);
    DL_APPEND(a->waiters, w);
    enum err err = advance(a, why);
    if (err)
        app_token_unwait(t, w);
    return err;
}

void app_token_unwait(struct app_tokens *t, struct app_token_waiter *w)
{
    struct account *a = account_of(t, w->repo);
    DL_DELETE(a->waiters, w);
    w->prev = w->next = NULL;
}
