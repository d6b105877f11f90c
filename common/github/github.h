/* Calls to GitHub's REST API as a GitHub App: installation tokens, limits and redirects, in one
 * place. Asynchronous on one thread, on top of an http_client.
 *
 *   github_start ─▶ installation id ─▶ access token ─▶ call ─▶ answer
 *                     (cached)          (cached)        │ 401: token dropped, once again
 *                                                       │ 301, 307, 308: same origin, once
 *
 * https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app */
#ifndef CRCR_GITHUB_GITHUB_H
#define CRCR_GITHUB_GITHUB_H

#include "../base/buf.h"
#include "../base/headers.h"
#include "../base/metrics.h"
#include "../crypto/jwt.h"
#include "../io/http_client.h"
#include "../view/budget_shared.h"

struct github;

struct redis;

/* GitHub's limits as a process keeps them; any thread. Free it after all that were given it. */
struct github_budget;
struct github_budget *github_budget_new(const struct budget_rules *rules);
void github_budget_free(struct github_budget *b);

struct github_options {
    const char *api_url; /* "https://api.github.com", no slash at the end */
    const char *app_id;
    const struct jwt_key *key;  /* borrowed */
    struct http_client *client; /* borrowed; the same thread */

    struct github_budget *budget; /* borrowed; NULL: only GitHub itself says when to wait */
    struct redis *redis;     /* borrowed, of this thread, without replies outstanding; counts the
                                budget for all replicas. NULL: this process counts alone */
    enum budget_class class; /* no call is of a class above it */
};

enum github_auth { GITHUB_AS_INSTALLATION, GITHUB_AS_APP };

/* What a call needs of the App's permissions; its token allows that, in its repository, no more.
 * https://docs.github.com/en/rest/authentication/permissions-required-for-github-apps */
enum github_permission {
    GITHUB_CONTENTS_READ,
    GITHUB_CONTENTS_WRITE,
    GITHUB_CHECKS_WRITE,
    GITHUB_ACTIONS_WRITE,
    GITHUB_PULLS_READ,
    GITHUB_PULLS_WRITE
};

struct github_request {
    enum github_auth auth;
    const char *method;                /* static, as is accept */
    struct str repo;                   /* whose installation signs; for GITHUB_AS_INSTALLATION */
    enum github_permission permission; /* likewise */
    const char *path; /* "/repos/o/r/dispatches"; parts are encoded by the caller */
    struct str body;  /* JSON, borrowed until answered; ptr NULL: none */
    /* Set: makes the body when the call is sent, after its token is there; sent_ms is that moment
     * (wall clock), *ret is borrowed until answered. Perhaps twice: after a 401 it is sent again.
     */
    enum err (*make_body)(void *opaque, int64_t sent_ms, struct str *ret, struct why *why);
    void *make_opaque;
    const char *accept; /* NULL: application/vnd.github+json */
    struct str etag;    /* sent as If-None-Match when not empty */
    size_t max_body_bytes;
    enum budget_class class;
    struct str downstream; /* whose share of the content it takes; absent: the repo's */
    int64_t pr;            /* likewise; 0: of none */
    int64_t send_by_ms;    /* as in http_request: later it waits for its turn, no attempt spent */
    bool creates_next;     /* it pays for a check run's creation, too (BUDGET_SEARCH) */
    bool paid;             /* by its bill: it takes nothing more, unless it is sent again or late */
};

/* err says what follows:
 * OK 2xx (and 304); ERR_REFUSE never (403 without a limit, 404, 410, 422, redirects elsewhere);
 * ERR_RETRY wait until wait_until_ms (limits: costs no attempt) or, when that is 0, it was surely
 * not sent; ERR_UNKNOWN no answer seen, or 5xx. */
struct github_answer {
    enum err err;
    int status;            /* 0 when none */
    int64_t wait_until_ms; /* monotonic clock: one that is set moves no deadline; 0: none */
    bool limited;          /* by a rate limit of GitHub's, or our own budget (sent_ms 0) */
    bool ours; /* it was our own budget: other kinds of call may still go; or it was too late to
                  send it (send_by_ms): all may, now */
    bool names_wait; /* the answer itself named wait_until_ms; else it is our guess */
    bool no_token;   /* ERR_REFUSE: not the call, but the look-up of its installation or token was
                        refused; at wait_until_ms GitHub is asked again */
    struct str body;
    struct str etag;
    struct str next_page;    /* path of Link rel="next", or absent */
    int64_t budget_left;     /* x-ratelimit-remaining, -1 unknown */
    int64_t budget_limit;    /* x-ratelimit-limit; 0 unknown */
    int64_t budget_reset_ms; /* x-ratelimit-reset, monotonic clock; 0 unknown */
    int64_t sent_ms; /* wall clock when the call itself (not the token) was sent; 0: never */
    int64_t micros;
    const char *reason; /* for people, when err != OK; never NULL then */
};
typedef void github_answered_fn(void *opaque, const struct github_answer *answer);

enum err github_new(struct github **ret, const struct github_options *options,
                    struct why *why) MUST_CHECK;
/* Calls the callbacks of what is under way with ERR_UNKNOWN; what they start is refused with
 * ERR_RETRY. Free the http_client after this, not before. NULL is fine. */
void github_free(struct github *g);
/* When this returns OK the callback comes exactly once, from http_client_poll (never from inside
 * github_start). Otherwise it does not come, and nothing was sent: ERR_REFUSE malformed; ERR_RETRY
 * a limit holds, our budget is used up, or its token could not be had a moment ago (github_unsent
 * says until when). */
enum err github_start(struct github *g, const struct github_request *request,
                      github_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* Called once, from http_client_poll. id: of what was created or changed, 0 unless
 * answer->err is OK. ERR_UNKNOWN when a 2xx answer cannot be read. */
typedef void github_written_fn(void *opaque, const struct github_answer *answer, int64_t id);
/* As github_start, for a request that GitHub answers with what was written. body is taken over,
 * also when this fails; ERR_REFUSE when it is full. what: "check run", for people; static. */
enum err github_write(struct github *g, const struct github_request *request, struct buf *body,
                      const char *what, github_written_fn *done, void *opaque,
                      struct why *why) MUST_CHECK;
/* True when every dispatch to that repo would fail now without being sent: *ret is the answer that
 * it would get (sent_ms 0). The reason is borrowed until the next call of a github function. */
bool github_blocked(struct github *g, struct str repo, struct github_answer *ret);
/* True while such a call is known to find our budget used up; downstream, pr and class as
 * in github_request: *ret is the answer, with the first moment at which one may go. Takes nothing,
 * asks nobody. reason as above. */
bool github_held(struct github *g, struct str repo, struct str downstream, int64_t pr,
                 enum budget_call call, enum budget_class class, struct github_answer *ret);
/* What a dispatch is to pay, for who takes it out of the shared budget in one step with something
 * else (view/claims.h): github_bill, then that step, then github_bill_answered. */
struct github_bill {
    struct budget_bill shared; /* account absent: nothing limits it, and nothing is to be taken */
    enum budget_call call;
    enum budget_class class;
};
/* A dispatch to that repo. False: it is known to be refused, *refused is its answer, and nobody
 * needs to be asked. The bill borrows repo. */
bool github_bill(struct github *g, struct str repo, struct github_bill *ret,
                 struct github_answer *refused) MUST_CHECK;
/* What the shared budget answered to a bill that has an account. True: it is paid; the request says
 * so. False: *refused is the call's answer, and remembered. reason as above. */
bool github_bill_answered(struct github *g, const struct github_bill *bill,
                          const struct budget_answer *answer,
                          struct github_answer *refused) MUST_CHECK;
/* The answer of a call that github_start has just refused with err and why. reason as above. */
struct github_answer github_unsent(struct github *g, enum err err, const struct why *why);
/* Metric families of a program, by index: labels (tier), (class, bucket), (class, bucket). */
struct budget_families {
    size_t github; /* gauge: what GitHub says is left, of this github's installation with least */
    size_t left;   /* gauge: of ours, of the process's account with least */
    size_t waits;  /* counter: calls held back */
};
/* Adds what happened to the budget since the last time; what is left, once a second. who is the
 * label of GitHub's number. */
void github_report_budget(struct github *g, struct metrics *m, const struct budget_families *to,
                          struct str who);
/* The App's id, as configured. */
const char *github_app_id(const struct github *g);

/* PURE: what an answer means. now_ms is the wall clock, and so are, unlike elsewhere, the moments
 * that it fills: GitHub names dates. Fills err, status, waits, etag, next_page and budget_left (the
 * latter borrowed from headers); leaves the rest at 0.
 *
 *   2xx, 304             OK
 *   429; 403 with Retry-After, x-ratelimit-remaining: 0 or "secondary rate limit"
 *                        ERR_RETRY, limited: Retry-After (seconds or a date), else
 *                        x-ratelimit-reset, else 60 s
 *   401                  ERR_RETRY: nothing happened, and our key or the clock may be mended
 *   408, 5xx             ERR_UNKNOWN, with wait_until_ms when Retry-After is there
 *   409, 425             ERR_RETRY
 *   all else             ERR_REFUSE */
void github_classify(int status, const struct headers *headers, struct str body, int64_t now_ms,
                     struct github_answer *ret);
/* PURE: page, the path of a next page, without the path of the API's own URL: that of a GitHub
 * Enterprise Server is https://HOST/api/v3, and a request puts it in front again. Borrows of page.
 * https://docs.github.com/en/enterprise-server@3.15/rest/quickstart */
struct str github_page_below(struct str page, const char *api_url);
/* PURE: "404 Not Found: <GitHub's message> (is the App installed on org/repo?)". repo may be
 * absent. */
void github_explain(const struct github_answer *answer, struct str body, struct str repo, char *to,
                    size_t size);

#endif
