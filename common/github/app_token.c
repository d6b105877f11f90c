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
#include "../model/ids.h"
#include "../model/json_member.h"
#include "../model/limits.h"

#define TOKEN_LIFE_MS    3600000     /* GitHub: "expires one hour from the time you create them" */
#define TOKEN_RENEW_MS   (5 * 60000) /* before its end */
#define TOKEN_LAST_MS    30000       /* an old one is still used this long before its end */
#define ANSWER_MAX_BYTES 65536
#define REFUSED_MS       60000 /* a refusal is believed for so long */
#define FAILED_MS        5000  /* and any other failure */

/* The token for one repository and permission. */
struct access {
    char repo[REPO_MAX + 1]; /* as it was asked for first */
    enum github_permission permission;
    struct app_tokens *tokens;
    int64_t *installation; /* of its owner; 0: not known */
    char *token;
    int64_t token_end_ms; /* monotonic, as is the next */
    /* A look-up that failed a moment ago: the next calls wait, which spends no attempt, and then
     * GitHub is asked again. An App may have been installed, or an account no longer be suspended.
     */
    int64_t failed_until_ms;
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
    struct app_jwt *jwt;        /* borrowed */
    struct gate_user *gate;     /* borrowed */
    struct table installations; /* of int64_t by owner in lower case */
    struct table accesses;      /* of struct access by "owner/repo contents:write" in lower case */
};

struct app_tokens *app_tokens_new(const struct api *api, struct app_jwt *jwt,
                                  struct gate_user *gate)
{
    struct app_tokens *t = mem_alloc(1, sizeof(*t));
    t->api = *api;
    t->jwt = jwt;
    t->gate = gate;
    t->installations.size = sizeof(int64_t);
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
    table_clear(&t->installations);
    free(t);
}

static int64_t *installation_of(struct app_tokens *t, struct str repo)
{
    char owner[REPO_MAX + 1];
    repo_account(owner, repo);
    return table_make(&t->installations, str_of(owner));
}

static struct access *access_of(struct app_tokens *t, struct str repo,
                                enum github_permission permission)
{
    char name[REPO_MAX + 2] = { (char)('a' + permission) };
    if (!str_lower(name + 1, sizeof(name) - 1, repo))
        name[1] = 0; /* no repo of GitHub's is that long */
    struct access *s = table_make(&t->accesses, str_of(name));
    if (s->tokens)
        return s;
    str_copy(s->repo, sizeof(s->repo), repo);
    s->permission = permission;
    s->tokens = t;
    s->installation = installation_of(t, repo);
    return s;
}

bool app_token_blocked(struct app_tokens *t, struct str repo, enum github_permission permission,
                       struct github_answer *ret)
{
    const struct access *s = access_of(t, repo, permission);
    if (s->failed_until_ms <= clock_mono_ms())
        return false;
    *ret = (struct github_answer){ .err = ERR_RETRY, /* GitHub was not asked for this call */
                                   .status = s->failed_status,
                                   .because = GATE_TOKEN,
                                   .wait_until_ms = s->failed_until_ms,
                                   .budget_left = -1,
                                   .reason = s->failed_reason };
    return true;
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
    if (failure.because != GATE_RATE_LIMIT) {
        bool refused = failure.err == ERR_REFUSE;
        s->failed_status = failure.status;
        s->failed_until_ms = clock_mono_ms() + (refused ? REFUSED_MS : FAILED_MS);
        str_copy(s->failed_reason, sizeof(s->failed_reason), str_of(failure.reason));
        failure.reason = s->failed_reason;
        if (refused) {
            failure.because = GATE_TOKEN;
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
        *s->installation = 0;
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
    struct github_answer seen = *answer;
    seen.budget_left = -1; /* the App's, not the installation's */
    gate_answered(s->tokens->gate, str_of(s->repo), &seen);
    answer = &seen;
    s->lookup = NULL;
    if (answer->status == 401)
        app_jwt_drop(s->tokens->jwt);
    if (!answer->err &&
        !(l->of_token ? token_read(s, answer->body) : id_read(answer->body, s->installation)))
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
    l->of_token = *s->installation != 0;
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
                 *s->installation);
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
