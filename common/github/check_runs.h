/* Check runs of the App: create, update, find again by name.
 * https://docs.github.com/en/rest/checks/runs. Asynchronous as github_start: the callback comes
 * exactly once, from http_client_poll, when the function returned OK. */
#ifndef CRCR_GITHUB_CHECK_RUNS_H
#define CRCR_GITHUB_CHECK_RUNS_H

#include "../base/buf.h"
#include "github.h"

#define CHECK_RUN_TEXT_MAX 65535 /* characters of summary; longer ones are cut with a mark */
#define CHECK_RUNS_MAX     1000  /* GitHub keeps 1,000 of one name a suite */

/* What a check run should be. Text is borrowed for the call only; absent or empty parts are not
 * sent. */
struct check_run_want {
    struct str name;                     /* create only */
    struct str head_sha;                 /* create only */
    struct str external_id;              /* "<run_id>:<pr>" */
    struct str status;                   /* queued, in_progress, completed */
    struct str conclusion;               /* completed only */
    struct str details_url;              /* http(s) */
    struct str started_at, completed_at; /* RFC 3339 */
    struct str title, summary;           /* output; both or none */
};

/* What GitHub says one is. Text is borrowed during the callback. */
struct check_run {
    int64_t id;
    int64_t app_id;
    struct str name, external_id, head_sha, status, conclusion;
};

/* create and update: n is 1 when answer->err is OK. list: all that were found, oldest first as
 * GitHub gives them. n is 0 when answer->err is not OK. An OK answer whose body is not what GitHub
 * documents becomes ERR_UNKNOWN. */
typedef void check_runs_answered_fn(void *opaque, const struct github_answer *answer,
                                    const struct check_run *runs, size_t n);

/* POST /repos/{repo}/check-runs */
enum err check_run_create(struct github *g, struct str repo, const struct check_run_want *want,
                          check_runs_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* PATCH /repos/{repo}/check-runs/{id} */
enum err check_run_update(struct github *g, struct str repo, int64_t id,
                          const struct check_run_want *want, check_runs_answered_fn *done,
                          void *opaque, struct why *why) MUST_CHECK;
/* GET /repos/{repo}/commits/{sha}/check-runs, our App's only, every attempt (filter=all), all
 * pages. name may be absent: all names. */
enum err check_runs_list(struct github *g, struct str repo, struct str sha, struct str name,
                         check_runs_answered_fn *done, void *opaque, struct why *why) MUST_CHECK;

/* PURE parts. */
/* The request body; create adds name and head_sha. */
void check_run_body(struct buf *to, const struct check_run_want *want, bool create);
/* summary cut at a character to what GitHub takes. */
struct str check_run_cut(struct str text);

#endif
