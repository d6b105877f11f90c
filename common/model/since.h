/* Since when does a job fail on the upstream's main, and which jobs are flaky? From the newest jobs
 * of a downstream and the order of main's commits. PURE.
 *
 *     newest ── ✗ ── · ── ✗ ── · ── · ── ✓ ── ✓ ── oldest      ✗ failed, ✓ succeeded, · not run
 *                         │    └────────┤
 *                     first red     last green: the commits from the first red one down to it,
 *                                   without it, hold what broke the job
 *
 * Jobs of main are nightly and periodic runs, and those of pushes whose commit is in the list, or
 * is older than it. (A push that is newer and not in it was to another branch.) Of a job that is
 * not of main only its flakiness is looked at. Cancelled and skipped jobs say nothing. */
#ifndef CRCR_MODEL_SINCE_H
#define CRCR_MODEL_SINCE_H

#include "push.h"
#include "result_record.h"

/* A commit that a job ran on. */
struct since_commit {
    const char *sha;                /* NULL: there is no such commit */
    const struct main_commit *main; /* NULL: it is not in the list, so its order is not known */
    int64_t at_ms;                  /* when it was pushed; else when a job first reported of it */
    const struct result_record *green, *red; /* the newest job of each result, or NULL */
    bool succeeds, fails; /* among the jobs that count; a replaced one makes it only flaky */
};
#define SINCE_STRIP 20

/* A job that failed on the newest commit that it ran on. Borrows from jobs and main. */
struct since_row {
    struct since_commit first_red, last_green;
    bool flaky;     /* the newest commit, or the last green one, has both results */
    size_t failing; /* commits that it ran on, from the newest to the first red one */
    size_t not_run; /* newer commits that other jobs of its kind ran on, but not this one */
    /* After the last green commit, up to the first red one; 0 when the order is not known. */
    const struct main_commit *between; /* newest first */
    size_t n_between;
    bool gap;                               /* a push is missing between them */
    struct since_commit strip[SINCE_STRIP]; /* the newest that it ran on, newest first */
    size_t n_strip;
};
/* A job that both succeeded and failed on one commit, in attempts or in several runs. */
struct flaky_row {
    size_t commits, flaky; /* that it has a result on; how many of them have both */
    const struct result_record *green, *red; /* of the newest such commit */
};

struct since {
    struct since_row *failing; /* the one that has failed longest first */
    struct flaky_row *flaky;   /* the flakiest first */
    size_t n_failing, n_flaky;
};
/* jobs: of one downstream, in any order, marked by jobs_mark_replaced (which_jobs.h). They and main
 * must outlive ret. */
void since_init(struct since *ret, const struct result_record *jobs, size_t n,
                const struct main_list *main);
void since_clear(struct since *since);

#endif
