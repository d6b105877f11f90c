/* What a request to run many again becomes (README.md, Re-runs). PURE.
 *
 *   check suite ──────▶ its check runs, newest of each name ──▶ rerun_all, one a (repo, run)
 *                            └─ aggregate of a repo without such a run ──▶ expand
 *   aggregate check ──▶ the jobs that the view has ──▶ rerun_all, newest run of each workflow
 *                            └─ none, or one that is not GitHub Actions' ──▶ a fresh dispatch */
#ifndef CRCR_DISPATCHER_RERUN_EXPAND_H
#define CRCR_DISPATCHER_RERUN_EXPAND_H

#include "../common/model/result_record.h"
#include "rerun.h"

/* Of a check suite; in as for rerun_check. What is skipped for one reason has one outcome a repo.
 * ret is the caller's to clear; it borrows from checks and from the allowlist. */
void expand_suite(const struct route_input *in, const struct check_asked *checks, size_t n,
                  struct routes *ret);

/* Drops the aggregates of repositories of which a run is repeated anyway: they would add nothing.
 * Routes that cannot be are marked as skipped before. */
void expand_drop_aggregates(struct routes *routes);

struct expand_aggregate {
    struct str repo;
    int level;
    int64_t pr; /* two pull requests may have the same head */
    /* Of the request itself: a run that it started before a crash is not run again. */
    struct str delivery;
};
/* Of an aggregate check, whose commit and downstream the jobs are of. Gives no route when a fresh
 * dispatch is needed, and says why in nothing: no run is known; or one is another CI's, which
 * GitHub cannot repeat, and a dispatch starts them all again. ret borrows from the jobs. */
void expand_aggregate(const struct expand_aggregate *of, const struct result_record *jobs, size_t n,
                      struct routes *ret);

#endif
