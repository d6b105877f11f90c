/* One check run as it should be at GitHub: its name, what it is found by, and what it says
 * (check-runs.md, "Check runs"). Which of them there should be is in which_checks.h. PURE. */
#ifndef CRCR_REPORTER_WANTED_CHECK_H
#define CRCR_REPORTER_WANTED_CHECK_H

#include "../common/view/checks.h"
#include "aggregate.h"

/* Of one attempt of one job, or the aggregate. */
struct wanted_check {
    bool aggregate; /* completed may be followed by a new check run of the same name */
    const struct result_record *job; /* borrowed; NULL: of the aggregate */
    const char *delivery;            /* borrowed */
    bool may_start;                  /* false: only a check run that exists is kept up to date */
    bool past;                       /* its commit is not the head of the pull request any more */
    int64_t pr;
    bool completed;
    const char *status;     /* as GitHub names it */
    const char *conclusion; /* NULL unless completed */
    char *name;
    char *external_id; /* "<run_id>:<pr>", the first percent-encoded; of the aggregate
                          "d:<delivery>:<pr>" */
    char *slot;        /* which of those with the same name: field in crcr:check:* */
    char *marker;      /* first line of the summary: finds it again at GitHub */
    char *details_url; /* or NULL */
    char *title, *summary;
    char started_at[32], completed_at[32]; /* RFC 3339 or "" */
    char digest[17];                       /* of all that is sent to GitHub */
};

/* What a job should have; job is borrowed and has its repo, names, ids and state. *to is to be
 * cleared. */
void wanted_check_of_job(const struct result_record *job, bool may_start, bool past,
                         struct wanted_check *to);
/* The aggregate, as it was worked out from view. *to is to be cleared. */
void wanted_check_of_aggregate(const struct aggregate *a, const struct aggregate_view *view,
                               bool past, struct wanted_check *to);
/* Where it is remembered what was sent: of a check run, borrowed from it; of the aggregate of that
 * repository, whose name is written to name. */
struct check_slot wanted_check_slot(const struct wanted_check *check);
struct check_slot aggregate_slot(struct buf *name, const char *repo);
/* True when a check run that was found at GitHub, with that external_id and summary and the same
 * name, is the one that is wanted. */
bool wanted_check_is(const struct wanted_check *check, struct str external_id, struct str summary);
void wanted_check_clear(struct wanted_check *check);

#endif
