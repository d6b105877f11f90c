/* GitHub's answers through the whole of common/github: installation id, access token, redirects,
 * pages, what each call makes of its answer. The first line chooses the call; then come the
 * answers, one after the other: a line with the status, headers, an empty line, the body up to a
 * line "==". This file stands for common/io/http_client.c and common/github/app_jwt.c. Whatever
 * GitHub answers, each call is answered once, and no token leaves GitHub. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/github/actions.h"
#include "common/github/app_jwt.h"
#include "common/github/check_runs.h"
#include "common/github/comments.h"
#include "common/github/commits.h"
#include "common/github/contents.h"
#include "common/github/dispatch.h"
#include "common/github/pulls.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define API_URL "https://api.github.com"
#define REPO    STR_LIT("org/repo")
#define SHA     STR_LIT("6dcb09b5b57875f334f61aebed695e2e4193db5e")

/* ---- an http_client that reads from the input ---- */

enum { IN_FLIGHT_MAX = 8, ANSWERS_MAX = 200 };

struct http_client {
    struct str answers;
    struct {
        http_answered_fn *done;
        void *opaque;
    } at[IN_FLIGHT_MAX];
    size_t n, answered;
};

static bool is_at_github(struct str url)
{
    const size_t n = sizeof(API_URL) - 1;
    struct str origin = { url.ptr, url.len < n ? url.len : n };
    return str_eq_nocase(origin, STR_LIT(API_URL)) && (url.len == n || url.ptr[n] == '/');
}

enum err http_client_start(struct http_client *c, const struct http_request *request,
                           http_answered_fn *done, void *opaque, struct why *why)
{
    enum err err = http_url_check(request->url, false, why);
    if (err)
        return err;
    must(is_at_github(str_of(request->url)) && c->n < IN_FLIGHT_MAX);
    must(headers_get(request->headers, "Authorization").len > 7);
    c->at[c->n].done = done;
    c->at[c->n++].opaque = opaque;
    return OK;
}

static struct http_answer answer_next(struct http_client *c, struct headers *headers)
{
    struct http_answer answer = { .err = ERR_UNKNOWN, .reason = "connection reset" };
    int64_t status;
    headers_init(headers);
    answer.headers = headers;
    if (!c->answers.len || c->answered++ == ANSWERS_MAX)
        return answer;
    ptrdiff_t end = str_find_str(c->answers, STR_LIT("\n==\n"));
    struct str text = c->answers;
    if (end >= 0)
        text.len = (size_t)end;
    c->answers = str_from(c->answers, end >= 0 ? (size_t)end + 4 : c->answers.len);
    if (!str_to_i64(input_line(&text), &status) || status < 100 || status > 599)
        return answer;
    input_headers(&text, headers);
    answer = (struct http_answer){
        .status = (int)status, .headers = headers, .body = input_rest(text), .http_version = 20
    };
    return answer;
}

size_t http_client_poll(struct http_client *c, struct wake *wake, int timeout_ms)
{
    struct headers headers;
    (void)wake, (void)timeout_ms;
    const struct http_answer answer = answer_next(c, &headers);
    c->n--;
    c->at[c->n].done(c->at[c->n].opaque, &answer);
    return c->n;
}

/* ---- an App whose key is no matter ---- */

void app_jwt_init(struct app_jwt *j, const char *app_id, const struct jwt_key *key)
{
    *j = (struct app_jwt){ .app_id = mem_dup(app_id), .key = key };
}

void app_jwt_clear(struct app_jwt *j)
{
    free(j->app_id);
}

enum err app_jwt_get(struct app_jwt *j, const char **ret, struct why *why)
{
    (void)j, (void)why;
    *ret = "the.app.itself";
    return OK;
}

void app_jwt_drop(struct app_jwt *j)
{
    (void)j;
}

/* ---- the calls ---- */

struct seen {
    int answered;
};

static void check(void *opaque, const struct github_answer *answer)
{
    ((struct seen *)opaque)->answered++;
    must(!answer->err == !answer->reason || !answer->err);
    must(!answer->because || answer->err == ERR_RETRY ||
         (answer->err == ERR_REFUSE && answer->because == GATE_TOKEN));
    must(!answer->because || answer->wait_until_ms);
}

static void on_answer(void *opaque, const struct github_answer *answer)
{
    struct pull pull;
    struct why why;
    check(opaque, answer);
    if (!answer->err)
        (void)!pull_read(answer->body, &pull, &why);
}

static void on_written(void *opaque, const struct github_answer *answer, int64_t id)
{
    check(opaque, answer);
    must(id >= 0 && (!answer->err || !id));
}

static void on_found(void *opaque, const struct check_run_found *run)
{
    (void)opaque;
    must(run->id > 0);
}

static void on_commit(void *opaque, const struct github_answer *answer, bool exists)
{
    check(opaque, answer);
    must(!exists || !answer->err);
}

static void on_comment(void *opaque, const struct github_answer *answer,
                       const struct comment_found *found)
{
    check(opaque, answer);
    must(found->id >= 0 && (!found->id || (!answer->err && found->body.ptr)));
}

static void on_run(void *opaque, const struct github_answer *answer, const struct actions_run *run)
{
    check(opaque, answer);
    must(!answer->err == !!run && (!run || run->status.len));
}

static void on_content(void *opaque, const struct content_answer *answer)
{
    ((struct seen *)opaque)->answered++;
    must(!answer->err || answer->reason);
}

static enum err call(struct github *g, struct http_client *c, int64_t which, struct seen *seen,
                     struct why *why)
{
    static const struct check_run run = { .name = { "crcr/org/repo", 13 },
                                          .head_sha = { "6dcb09b5b57875f3", 16 },
                                          .status = { "queued", 6 } };
    static const struct dispatch dispatch = { .repo = { "org/repo", 8 },
                                              .event_type = "pull_request",
                                              .delivery = { "d-1", 3 },
                                              .payload = { "{\"action\":\"opened\"}", 19 } };
    struct content_source source;
    switch (which) {
    case 1:
        return check_run_find(g, REPO, &run, on_found, on_written, seen, why);
    case 2:
        return check_run_list(g, REPO, 7, on_found, on_written, seen, why);
    case 3:
        return check_run_create(g, REPO, &run, on_written, seen, why);
    case 4:
        return commit_ask(g, REPO, SHA, on_commit, seen, why);
    case 5:
        return comment_find(g, REPO, 7, STR_LIT("<!-- crcr -->"), on_comment, seen, why);
    case 6:
        return actions_rerun(g, REPO, STR_LIT("42"), true, 0, on_answer, seen, why);
    case 7:
        return actions_run_get(g, REPO, STR_LIT("42"), on_run, seen, why);
    case 8:
        return dispatch_start(g, &dispatch, on_answer, seen, why);
    case 9:
        must(!content_source_parse(
            &source, STR_LIT("https://github.com/org/repo/blob/main/allowlist.yml"), why));
        return content_fetch(&source, g, c, STR_LIT("W/\"1\""), 1u << 20, on_content, seen, why);
    default:
        return pull_get(g, REPO, 7, on_answer, seen, why);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct budget_rules rules = { .limit = { 1000, 1000, 1000, 1000 }, .replicas = 1 };
    struct str text = { (const char *)data, size };
    int64_t which = 0;
    struct why why = { "" };
    struct github *g = NULL;
    struct seen seen = { 0 };
    struct github_answer blocked;
    (void)str_to_i64(input_line(&text), &which);
    struct http_client client = { .answers = text };
    struct gate *gate = gate_new(&rules);
    const struct github_options options = {
        .api_url = API_URL, .app_id = "12345", .client = &client, .gate = gate
    };
    must(!github_new(&g, &options, &why));
    for (int i = 1; i <= 2; i++) { /* the second meets what the first one left */
        int before = seen.answered;
        if (call(g, &client, which, &seen, &why)) {
            must(seen.answered == before && why.text[0]);
            break;
        }
        while (client.n)
            http_client_poll(&client, NULL, 0);
        must(seen.answered == before + 1);
    }
    const struct gate_call next = { .repo = REPO, .kind = BUDGET_DISPATCH };
    if (github_holds(g, &next, &blocked))
        must(blocked.err && blocked.reason && !blocked.sent_ms);
    github_free(g);
    gate_free(gate);
    return 0;
}
