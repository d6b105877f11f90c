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
#include "../crypto/jwt.h"
#include "../io/http_client.h"
#include "gate.h"

struct github;

struct github_options {
    const char *api_url; /* "https://api.github.com", no slash at the end */
    const char *app_id;
    const struct jwt_key *key;  /* borrowed */
    struct http_client *client; /* borrowed; the same thread */

    struct gate *gate;       /* borrowed; NULL: one of its own, without a budget */
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
    bool inside;           /* it counts as in flight already (github_reserve) */
    bool paid;             /* by its bill: it takes nothing more, unless it is sent again or late */
};

/* err says what follows:
 * OK 2xx (and 304); ERR_REFUSE never (403 without a limit, 404, 410, 422, redirects elsewhere);
 * ERR_RETRY known to be without effect; ERR_UNKNOWN no answer seen, or 5xx. */
struct github_answer {
    enum err err;
    int status;            /* 0 when none */
    int64_t wait_until_ms; /* monotonic clock: one that is set moves no deadline; 0: none */
    /* ERR_RETRY: why it waits until then, which costs no attempt; GATE_NOW: it failed. GATE_BUDGET
     * and GATE_IN_FLIGHT hold back calls like it, the others all of the account. ERR_REFUSE and
     * GATE_TOKEN: not the call was refused, but the look-up of its installation or token. */
    enum gate_reason because;
    int64_t since_ms; /* GATE_BREAKER: since when it is open; monotonic */
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
 * the gate holds it (github_unsent says why and until when). */
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
/* As gate_holds: true while such a call is known not to go, a dispatch also for want of a token. */
bool github_holds(struct github *g, const struct gate_call *call, struct github_answer *ret);
/* As gate_reserve, for a call to that repo, which then is sent as inside. Who sends none after all
 * says so to github_unreserve. */
bool github_reserve(struct github *g, struct str repo) MUST_CHECK;
void github_unreserve(struct github *g, struct str repo);
/* As gate_bill, for a dispatch that is inside, and then is sent as paid. */
bool github_bill(struct github *g, struct str repo, struct gate_bill *ret,
                 struct github_answer *refused) MUST_CHECK;
/* As gate_paid. */
bool github_paid(struct github *g, const struct gate_bill *bill, const struct budget_answer *answer,
                 struct github_answer *refused) MUST_CHECK;
/* The answer of a call that github_start has just refused with err and why. reason as above. */
struct github_answer github_unsent(struct github *g, enum err err, const struct why *why);
/* As gate_report. */
void github_report(struct github *g, struct metrics *m, const struct budget_families *to,
                   struct str who);
/* The App's id, as configured. */
const char *github_app_id(const struct github *g);

/* PURE: what an answer means. now_ms is the wall clock, and so are, unlike elsewhere, the moments
 * that it fills: GitHub names dates. Fills err, status, waits, etag, next_page and budget_left (the
 * latter borrowed from headers); leaves the rest at 0.
 *
 *   2xx, 304             OK
 *   429; 403 with Retry-After, x-ratelimit-remaining: 0 or "secondary rate limit"
 *                        ERR_RETRY, GATE_RATE_LIMIT: Retry-After (seconds or a date), else
 *                        x-ratelimit-reset, else 0: the gate says
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
