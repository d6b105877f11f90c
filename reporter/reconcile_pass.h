/* One pass over one commit and downstream, in its parts: what it read (reconcile_view.c) and what
 * it does about it (reconcile_pass.c). */
#ifndef CRCR_REPORTER_RECONCILE_PASS_H
#define CRCR_REPORTER_RECONCILE_PASS_H

#include "../common/view/dispatches.h"
#include "../common/view/runs.h"
#include "reconcile_comment.h"

#define AGGREGATE_JOBS_MAX 2000 /* looked at for an aggregate */

struct pass {
    struct target *target;
    struct job_list jobs;
    struct wanted_check *wanted;
    struct check_sent *sent; /* of each, as the pass began: nobody else sends for this target while
                                it is ours (target_is_old) */
    size_t n, i;
    int64_t found_id; /* by the search at GitHub; 0: none */
    bool found_completed;
    bool refused, failed;
    int64_t held_ms;  /* monotonic: when our budget may have room for what was left out; 0: none */
    char reason[512]; /* of the first refusal, or of the failure; as long as a why */

    /* The aggregate: worked out after the checks of the jobs, for it may ask GitHub. */
    bool summed_up; /* its check, if there is one, is the last of wanted */
    bool has_dispatch;
    bool may_start;
    struct dispatch_view dispatch;
    struct run_answers answers;
    struct job_list more; /* instead of jobs, when those of the commit are too many for its set */
    char asking[RUN_ID_MAX + 1];

    struct oncall_job *commented; /* those with a check run: what on-call comments are about */
};

/* Where it is remembered what was sent of a check run; borrowed from w. */
struct check_slot pass_slot(const struct wanted_check *w);
/* Reads the view: the jobs, what is wanted of them now, and what was sent before. */
enum err pass_view_read(struct pass *p, struct why *why) MUST_CHECK;

/* Goes on with the next check run that differs; ends the pass after the last one. */
void pass_step(struct pass *p);
/* Ends the pass and frees it. */
void pass_finish(struct pass *p, enum pass_end end, const char *reason);
/* The aggregate's check run will not be taken: no more looking for its sake. */
void pass_forget_due(struct pass *p);
/* Has the target looked at again at once, by whoever has it. */
void pass_look_again(struct pass *p);
/* Counts a call to GitHub. */
void pass_count(struct pass *p, const char *call, const struct github_answer *answer);
/* Asks GitHub about runs where it is time to, notes when to look again, and adds the aggregate's
 * check to wanted. False: the pass goes on from elsewhere, or has ended. reconcile_aggregate.c */
bool pass_sum_up(struct pass *p);

#endif
