#include "app_token.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/table.h"
#include "../model/json_member.h"
#include "../model/limits.h"

#define TOKEN_LIFE_MS       3600000 /* GitHub: "expires one hour from the time you create them" */
#define TOKEN_RENEW_MS      (5 * 60000) /* before its end */
#define TOKEN_LAST_MS       30000       /* an old one is still used this long before its end */
#define LIMIT_FIRST_WAIT_MS 60000       /* first wait after a limit that names no time */
#define LIMIT_DOUBLINGS     4           /* doublings: 1, 2, 4, 8, 16 minutes */
#define ANSWER_MAX_BYTES    65536
#define REFUSED_MS          60000 /* a refusal is believed for so long */
#define FAILED_MS           5000  /* and any other failure */

/* The installation for one owner. */
struct account {
    int64_t installation;     /* 0: not known */
    int64_t limited_until_ms; /* monotonic */
    int limits_in_row;
    int64_t left, limit, reset_ms; /* GitHub's last numbers; reset_ms 0: none yet */
};

/* The token for one repository and permission. */
struct access {
    char repo[REPO_MAX + 1]; /* as it was asked for first */
    enum github_permission permission;
    struct app_tokens *tokens;
    struct account *account;
    char *token;
    int64_t token_end_ms; /* monotonic, as is the next */
    /* A look-up that failed a moment ago, so that the next calls do not repeat it at once. After a
     * refusal calls wait, which spends no attempt, and then GitHub is asked again: an App may have
     * been installed, or an account no longer be suspended. */
    int64_t failed_until_ms;
    enum err failed_err;
    int failed_status;
    char failed_reason[512];
    bool found_again; /* the id was looked up anew in this round */
    bool by_old_name; /* GitHub finds the repository, but not in its installation: it was renamed,
                         and its token is for all of the installation */
    struct app_token_waiter *waiters;
    struct lookup *lookup; /* under way, or NULL */
};

/* A request under way; outlives its access when the cache is freed before the http_client. */
struct lookup {
    struct access *access; /* NULL: nobody waits any more */
    bool of_token;         /* else of the installation's id */
    char body[REPO_MAX + 96];
};

/* The name and the value of "permissions".
 * https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app */
static const struct {
    const char *name, *value;
} permissions[] = {
    [GITHUB_CONTENTS_READ] = { "contents", "read" },
    [GITHUB_CONTENTS_WRITE] = { "contents", "write" },
    [GITHUB_CHECKS_WRITE] = { "checks", "write" },
    [GITHUB_ACTIONS_WRITE] = { "actions", "write" },
    [GITHUB_PULLS_READ] = { "pull_requests", "read" },
    [GITHUB_PULLS_WRITE] = { "pull_requests", "write" },
};

struct app_tokens {
    struct api api;
    struct app_jwt *jwt;   /* borrowed */
    struct table accounts; /* of struct account by owner in lower case */
    struct table accesses; /* of struct access by "owner/repo contents:write" in lower case */
};

struct app_tokens *app_tokens_new(const struct api *api, struct app_jwt *jwt)
{
    struct app_tokens *t = mem_alloc(1, sizeof(*t));
    t->api = *api;
    t->jwt = jwt;
    t->accounts.size = sizeof(struct account);
    t->accesses.size = sizeof(struct access);
    return t;
}

static void token_forget(struct access *s)
{
    mem_free_secret(s->token);
    s->token = NULL;
}

void app_tokens_free(struct app_tokens *t)
{
    if (!t)
        return;
    for (struct access *s = NULL; (s = table_next(&t->accesses, s));) {
        if (s->lookup)
            s->lookup->access = NULL;
        token_forget(s);
    }
    table_clear(&t->accesses);
    table_clear(&t->accounts);
    free(t);
}

/* ---- accounts ---- */

static struct account *account_of(struct app_tokens *t, struct str repo)
{
    char owner[REPO_MAX + 1];
    ptrdiff_t slash = str_find(repo, '/');
    if (slash >= 0)
        repo.len = (size_t)slash;
    if (!str_lower(owner, sizeof(owner), repo))
        owner[0] = 0; /* no repo of GitHub's is that long */
    return table_make(&t->accounts, str_of(owner));
}

static struct access *access_of(struct app_tokens *t, struct str repo,
                                enum github_permission permission)
{
    char name[REPO_MAX + 24], lower[REPO_MAX + 1];
    if (!str_lower(lower, sizeof(lower), repo))
        lower[0] = 0; /* no repo of GitHub's is that long */
    snprintf(name, sizeof(name), "%s %s:%s", lower, permissions[permission].name,
             permissions[permission].value);
    struct access *s = table_make(&t->accesses, str_of(name));
    if (s->tokens)
        return s;
    str_copy(s->repo, sizeof(s->repo), repo);
    s->permission = permission;
    s->tokens = t;
    s->account = account_of(t, repo);
    return s;
}

bool app_token_blocked(struct app_tokens *t, struct str repo, enum github_permission permission,
                       struct github_answer *ret)
{
    const struct access *s = access_of(t, repo, permission);
    int64_t now_ms = clock_mono_ms();
    if (s->account->limited_until_ms > now_ms) {
        *ret = (struct github_answer){
            .err = ERR_RETRY,
            .limited = true,
            .names_wait = true,
            .wait_until_ms = s->account->limited_until_ms,
            .budget_left = -1,
            .reason = "a rate limit of GitHub's holds for this installation",
        };
        return true;
    }
    if (s->failed_until_ms <= now_ms)
        return false;
    *ret = (struct github_answer){ .err = s->failed_err,
                                   .status = s->failed_status,
                                   .budget_left = -1,
                                   .reason = s->failed_reason };
    if (s->failed_err == ERR_REFUSE) { /* GitHub was not asked for this call */
        ret->err = ERR_RETRY;
        ret->limited = true;
        ret->wait_until_ms = s->failed_until_ms;
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
    for (const struct account *a = NULL; (a = table_next(&t->accounts, a));) {
        int64_t left = a->reset_ms <= now_ms && a->limit > 0 ? a->limit : a->left;
        if (a->reset_ms && (least < 0 || left < least))
            least = left;
    }
    return least;
}

/* ---- access tokens ---- */

static bool token_good(const struct access *s, int64_t before_end_ms)
{
    return s->token && clock_mono_ms() < s->token_end_ms - before_end_ms;
}

const char *app_token_cached(struct app_tokens *t, struct str repo,
                             enum github_permission permission)
{
    const struct access *s = access_of(t, repo, permission);
    return token_good(s, TOKEN_RENEW_MS) ? s->token : NULL;
}

void app_token_drop(struct app_tokens *t, struct str repo, enum github_permission permission,
                    const char *token)
{
    struct access *s = access_of(t, repo, permission);
    if (s->token && strcmp(s->token, token) == 0)
        token_forget(s);
}

static void release(struct access *s, const struct github_answer *failure)
{
    struct app_token_waiter *w, *next, *ready = s->waiters;
    const char *token = failure ? NULL : s->token;
    s->waiters = NULL; /* those who are answered may wait anew */
    DL_FOREACH_SAFE(ready, w, next)
    {
        DL_DELETE(ready, w);
        w->prev = w->next = NULL;
        w->done(w, token, failure);
    }
}

/* It may have worked where no answer was seen; but the call that waited for it was surely not made.
 */
static void fail(struct access *s, const struct github_answer *answer)
{
    struct github_answer failure = *answer;
    failure.sent_ms = 0;
    if (failure.err == ERR_UNKNOWN)
        failure.err = ERR_RETRY;
    s->found_again = false;
    account_answered(s->account, &failure);
    if (!failure.limited) {
        bool refused = failure.err == ERR_REFUSE;
        s->failed_err = failure.err;
        s->failed_status = failure.status;
        s->failed_until_ms = clock_mono_ms() + (refused ? REFUSED_MS : FAILED_MS);
        str_copy(s->failed_reason, sizeof(s->failed_reason), str_of(failure.reason));
        failure.reason = s->failed_reason;
        if (refused) {
            failure.no_token = true;
            failure.wait_until_ms = s->failed_until_ms;
        }
    }
    release(s, &failure);
}

static bool id_read(struct str body, int64_t *id)
{
    json_t *document = json_document(body, NULL);
    *id = json_integer_value(json_object_get(document, "id"));
    json_decref(document);
    return *id > 0;
}

static bool token_read(struct access *s, struct str body)
{
    json_t *document = json_document(body, NULL);
    const char *token = json_string_value(json_object_get(document, "token"));
    const char *end = json_string_value(json_object_get(document, "expires_at"));
    int64_t end_ms;
    bool good = token && *token && !clock_parse(str_of(end), &end_ms, NULL);
    if (good) {
        token_forget(s);
        s->token = mem_dup(token);
        /* On the monotonic clock: how long it lives is known when it comes. A clock that is wrong
         * just then makes it live no longer than GitHub's tokens do. */
        int64_t left_ms = end_ms - clock_wall_ms();
        s->token_end_ms = clock_mono_ms() + (left_ms < TOKEN_LIFE_MS ? left_ms : TOKEN_LIFE_MS);
    }
    json_decref(document);
    return good;
}

static enum err advance(struct access *s, struct why *why) MUST_CHECK;

/* The next step for those who still wait; they get an answer when it cannot even be started. */
static void go_on(struct access *s)
{
    struct why why;
    enum err err = advance(s, &why);
    if (err) {
        struct github_answer failure = { .err = err, .budget_left = -1, .reason = why.text };
        fail(s, &failure);
    }
}

static const struct github_answer garbage = {
    .err = ERR_RETRY,
    .status = 200,
    .budget_left = -1,
    .reason = "GitHub's answer about the installation cannot be read",
};

static void minted(struct access *s, const struct github_answer *answer)
{
    if (!answer->err) {
        s->found_again = false;
        release(s, NULL);
    } else if (answer->status == 404 && !s->found_again) {
        s->found_again = true; /* removed and installed again: it has another id now */
        s->account->installation = 0;
        go_on(s);
    } else if (answer->status == 422 && !s->by_old_name) {
        s->by_old_name = true;
        go_on(s);
    } else if (answer->err != ERR_REFUSE && token_good(s, TOKEN_LAST_MS)) {
        release(s, NULL);
    } else {
        s->by_old_name = false;
        fail(s, answer);
    }
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct lookup *l = opaque;
    struct access *s = l->access;
    if (!s) {
        free(l);
        return;
    }
    s->lookup = NULL;
    if (answer->status == 401)
        app_jwt_drop(s->tokens->jwt);
    if (!answer->err && !(l->of_token ? token_read(s, answer->body)
                                      : id_read(answer->body, &s->account->installation)))
        answer = &garbage;
    if (l->of_token)
        minted(s, answer);
    else if (answer->err)
        fail(s, answer);
    else
        go_on(s);
    free(l);
}

/* Starts the request that brings those who wait nearer to a token, unless one is under way. */
static enum err advance(struct access *s, struct why *why)
{
    if (s->lookup || !s->waiters)
        return OK;
    const char *jwt;
    char path[REPO_MAX + 80];
    enum err err = app_jwt_get(s->tokens->jwt, &jwt, why);
    if (err)
        return err;
    struct lookup *l = mem_alloc(1, sizeof(*l));
    l->access = s;
    l->of_token = s->account->installation != 0;
    struct github_request request = {
        .method = "GET",
        .repo = str_of(s->repo),
        .path = path,
        .max_body_bytes = ANSWER_MAX_BYTES,
    };
    if (l->of_token) {
        const char *slash = strchr(s->repo, '/');
        char repositories[REPO_MAX + 24] = "";
        if (!s->by_old_name)
            snprintf(repositories, sizeof(repositories), ",\"repositories\":[\"%s\"]",
                     slash ? slash + 1 : "");
        snprintf(l->body, sizeof(l->body), "{\"permissions\":{\"%s\":\"%s\"}%s}",
                 permissions[s->permission].name, permissions[s->permission].value, repositories);
        snprintf(path, sizeof(path), "/app/installations/%" PRId64 "/access_tokens",
                 s->account->installation);
        request.method = "POST";
        request.body = str_of(l->body);
    } else {
        snprintf(path, sizeof(path), "/repos/%s/installation", s->repo);
    }
    err = api_call_start(&s->tokens->api, &request, jwt, answered, l, why);
    if (err)
        free(l);
    else
        s->lookup = l;
    return err;
}

enum err app_token_wait(struct app_tokens *t, struct app_token_waiter *w, struct why *why)
{
    struct access *s = access_of(t, w->repo, w->permission);
    DL_APPEND(s->waiters, w);
    enum err err = advance(s, why);
    if (err)
        app_token_unwait(t, w);
    return err;
}

void app_token_unwait(struct app_tokens *t, struct app_token_waiter *w)
{
    struct access *s = access_of(t, w->repo, w->permission);
    DL_DELETE(s->waiters, w);
    w->prev = w->next = NULL;
}
