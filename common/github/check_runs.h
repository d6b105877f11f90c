/* Check runs on a commit of the upstream repository, as our App
 * (https://docs.github.com/en/rest/checks/runs). Implemented in check_runs.c on top of
 * github_start: limits, redirects and tokens are handled there. */
#ifndef CRCR_GITHUB_CHECK_RUNS_H
#define CRCR_GITHUB_CHECK_RUNS_H

#include "../base/buf.h"
#include "github.h"

#define CHECK_RUN_TEXT_MAX 65535 /* characters of a summary; more is cut with a mark */

/* What a check run should say; borrowed for the call. Absent (ptr NULL) or empty members are not
 * sent. head_sha and name are not sent on an update. */
struct check_run {
    struct str name;
    struct str head_sha;
    struct str status;     /* queued, in_progress, completed */
    struct str conclusion; /* only with completed */
    struct str details_url;
    struct str external_id;
    struct str started_at, completed_at; /* RFC 3339 */
    struct str title, summary;           /* output; summary: Markdown, ≤ 65,535 characters */
    enum budget_class class;
    struct str downstream; /* whose it is; absent: the repo's */
    int64_t pr;            /* of which pull request; 0: of none */
    bool creates_next;     /* the search for it pays for its creation, too */
    bool paid;             /* its creation, by the search before it */
    int64_t send_by_ms;    /* as in struct github_request */
};

/* POST /repos/{repo}/check-runs. */
enum err check_run_create(struct github *g, struct str repo, const struct check_run *run,
                          github_written_fn *done, void *opaque, struct why *why) MUST_CHECK;
/* PATCH /repos/{repo}/check-runs/{id}. */
enum err check_run_update(struct github *g, struct str repo, int64_t id,
                          const struct check_run *run, github_written_fn *done, void *opaque,
                          struct why *why) MUST_CHECK;

/* One check run that exists at GitHub; borrowed during the callback. */
struct check_run_found {
    int64_t id;
    int64_t app_id; /* 0 unknown */
    struct str name, external_id, status, conclusion, summary;
};
/* found is called for each of our App's check runs of run's name on its commit, over all pages,
 * then done once with the last answer (id 0). Each page is a call of run's class; the first pays
 * for the creation of run, too, where run says so. When an answer is not OK, done comes at once
 * with it. GET /repos/{repo}/commits/{head_sha}/check-runs?check_name=…&filter=all&per_page=100. A
 * commit that GitHub does not know (404, 422) is ERR_REFUSE. */
typedef void check_run_found_fn(void *opaque, const struct check_run_found *run);
enum err check_run_find(struct github *g, struct str repo, const struct check_run *run,
                        check_run_found_fn *found, github_written_fn *done, void *opaque,
                        struct why *why) MUST_CHECK;

/* The newest check run of each name in a check suite, of whatever App, given as by check_run_find;
 * ERR_REFUSE when they are more than 10,000.
 * GET /repos/{repo}/check-suites/{suite_id}/check-runs?filter=latest&per_page=100
 * (https://docs.github.com/en/rest/checks/runs#list-check-runs-in-a-check-suite) */
enum err check_run_list(struct github *g, struct str repo, uint64_t suite_id,
                        check_run_found_fn *found, github_written_fn *done, void *opaque,
                        struct why *why) MUST_CHECK;

/* The request body (PURE); create adds name and head_sha. The summary is cut to what GitHub takes.
 */
void check_run_body(struct buf *to, const struct check_run *run, bool create);

#endif
