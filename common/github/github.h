/* Calls to GitHub's REST API as a GitHub App: installation tokens, conditional retries, limits and
 * redirects, in one place. Asynchronous on one thread, on top of an http_client.
 *
 *   github_start ─▶ installation id (cached) ─▶ access token (cached, renewed 5 min before its end)
 * ─▶ call 401 ─▶ token dropped, once again      301/307/308 same origin ─▶ followed once, method
 * kept
 *
 * https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app */
#ifndef CRCR_GITHUB_GITHUB_H
#define CRCR_GITHUB_GITHUB_H

#include "../base/headers.h"
#include "../crypto/jwt.h"
#include "../io/http_client.h"

struct github;

struct github_options {
    const char *api_url; /* "https://api.github.com", no slash at the end */
    const char *app_id;
    const struct jwt_key *key;  /* borrowed */
    struct http_client *client; /* borrowed; the same thread */
};

enum github_auth { GITHUB_AS_INSTALLATION, GITHUB_AS_APP };

struct github_request {
    enum github_auth auth;
    const char *method;
    struct str repo;    /* whose installation signs; for GITHUB_AS_INSTALLATION */
    const char *path;   /* "/repos/o/r/dispatches"; parts are encoded by the caller */
    struct str body;    /* JSON, borrowed until answered; ptr NULL: none */
    const char *accept; /* NULL: application/vnd.github+json */
    struct str etag;    /* sent as If-None-Match when not empty */
    size_t max_body_bytes;
};

/* err says what follows (behaviour.md, GitHub answers):
 * OK 2xx (and 304); ERR_REFUSE never (403 without a limit, 404, 410, 422, redirects elsewhere);
 * ERR_RETRY wait until wait_until_ms (limits: costs no attempt) or, when that is 0, it was surely
 * not sent; ERR_UNKNOWN no answer seen, or 5xx. */
struct github_answer {
    enum err err;
    int status;            /* 0 when none */
    int64_t wait_until_ms; /* wall clock; 0: none told */
    bool limited;          /* a rate limit spoke */
    struct str body;
    struct str etag;
    struct str next_page; /* path of Link rel="next", or absent */
    int64_t budget_left;  /* x-ratelimit-remaining, -1 unknown */
    int64_t sent_ms;      /* wall clock when the call itself (not the token) was sent; 0: never */
    int64_t micros;
    const char *
        reason; /* for people, when err != OK: "404 Not Found: is the App installed on org/repo?" */
};
typedef void github_answered_fn(void *opaque, const struct github_answer *answer);

enum err github_new(struct github **ret, const struct github_options *options,
                    struct why *why) MUST_CHECK;
/* Calls the callbacks of what is under way with ERR_UNKNOWN. NULL is fine. */
void github_free(struct github *g);
/* The callback comes exactly once, from http_client_poll (never from inside github_start). */
enum err github_start(struct github *g, const struct github_request *request,
                      github_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* Waits for one call by polling the client (other calls move on meanwhile). The body is copied to
 * *body, the caller's; answer's own strings are not valid after. For start-up, the allowlist and
 * tools. */
enum err github_wait(struct github *g, const struct github_request *request,
                     struct github_answer *answer, char **body, size_t *body_len,
                     struct why *why) MUST_CHECK;

/* PURE part: what an answer means. now_ms is the wall clock. */
void github_judge(int status, const struct headers *headers, struct str body, int64_t now_ms,
                  struct github_answer *ret);

#endif
