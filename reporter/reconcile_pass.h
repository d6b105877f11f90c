/* One pass over one commit and downstream, in its parts: what it read (reconcile_view.c) and what
 * it does about it (reconcile_pass.c). */
#ifndef CRCR_REPORTER_RECONCILE_PASS_H
#define CRCR_REPORTER_RECONCILE_PASS_H

#include "reconcile.h"

struct pass {
    struct target *target;
    struct job_list jobs;
    struct wanted_check *wanted;
    struct check_sent *sent; /* of each, as the pass began: nobody else sends for this target */
    size_t n, i;
    int64_t found_id; /* by the search at GitHub; 0: none */
    bool found_completed;
    bool refused;
    char reason[256]; /* of the first refusal */
};

/* Where it is remembered what was sent of a check run; borrowed from w. */
struct check_slot pass_slot(const struct wanted_check *w);
/* Reads the view: the jobs, what is wanted of them now, and what was sent before. */
enum err pass_view_read(struct pass *p, struct why *why) MUST_CHECK;

#endif
