/* Is it this pull request? What the other jobs of the downstream say of one that failed. The pages,
 * check runs, comments and crcrctl all say it by this. PURE.
 *
 * Of the reasons that hold the first counts: the one that tells most about what to do.
 *
 *   main       it fails on main too: not this pull request, and there is a commit to look at
 *   flaky      it passed and failed on one commit: a re-run may pass
 *   others     it fails on other pull requests: not this one alone, but nobody knows why
 *   only here  none of these: look at the change
 *
 * "Fails on main" is what since.h says of pushes. Nightly and periodic runs do not count: no check
 * run depends on the commit that they claim. Nothing here depends on the time of now: ages are
 * those at the end of the job, so that what was written stays true. */
#ifndef CRCR_MODEL_KNOWN_FAILURE_H
#define CRCR_MODEL_KNOWN_FAILURE_H

#include "../base/buf.h"
#include "push.h"
#include "result_record.h"

#define KNOWN_WITHIN_MS (24 * 3600 * 1000) /* other pull requests: so far from the job's end */

enum known_reason { KNOWN_MAIN, KNOWN_FLAKY, KNOWN_OTHERS, KNOWN_ONLY_HERE };
/* As the JSON and the texts at GitHub name it. */
const char *known_reason_name(enum known_reason reason);

/* Of one job. All that is known is there, whatever the reason is. */
struct known_failure {
    enum known_reason reason;
    char since_sha[SHA_MAX + 1]; /* first commit of main that it fails on; "": it does not */
    int64_t since_ms;            /* when that was pushed */
    bool or_earlier;             /* no older commit that it passed on is known */
    size_t flaky, commits;       /* of how many commits with a result it has both; 0: not flaky */
    size_t others;               /* other pull requests that it fails on */
    int64_t failed_ms;           /* the end of the job */
};
#define KNOWN_SENTENCE_MAX 200
/* "fails on main too, since 9c1d1a2b3c, 3 h before this job" */
void known_failure_put(struct buf *to, const struct known_failure *known);

/* What the newest jobs of one downstream say. */
struct known_failures;
/* jobs: in any order, marked by jobs_mark_replaced (which_jobs.h). Nothing of it is kept. */
struct known_failures *known_failures_new(const struct result_record *jobs, size_t n,
                                          const struct main_list *main);
/* NULL is fine. */
void known_failures_free(struct known_failures *all);
/* True for a job that failed and is of a pull request: of others nothing is said. */
bool known_failure_applies(const struct result_record *job);
/* Of such a job of the same downstream; the caller's. NULL: it is older than all that are known. */
struct known_failure *known_failure_new(struct known_failures *all,
                                        const struct result_record *job);

#endif
