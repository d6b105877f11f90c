/* What the aggregate check run of a commit and downstream should say now: the worst of all jobs and
 * runs of the newest delivery (check-runs.md, "The aggregate"). It follows from the view and the
 * clock alone. PURE.
 *
 * It exists at L4 alone: at L3 whoever reads all checks of a commit would take it for a failed one.
 * One that was made while the downstream was at L4 ends as neutral.
 *
 *   dispatched ──first job──▶ in progress ──all runs ended──▶ completed
 *       │                          ▲                              │
 *       ├─refused, exhausted───────┼──▶ completed: failure        │
 *       └─nobody answers───────────┼──▶ completed: timed_out      │
 *                                  └─────a new attempt or run─────┘ (then it is a new check run)
 *
 * A run of GitHub Actions ends when GitHub says so, one of another CI when it failed, when it said
 * run_complete, or when nothing was in progress for a while.
 *
 * Worst first: failure, timed_out, cancelled, action_required, success, neutral, skipped. With
 * forgive_known a job that fails on main too counts as neutral; when nothing else went wrong, so
 * does all of it. */
#ifndef CRCR_REPORTER_AGGREGATE_H
#define CRCR_REPORTER_AGGREGATE_H

#include "../common/model/which_jobs.h"
#include "../common/view/dispatches.h"
#include "../common/view/runs.h"

#define RUNS_ASKED_MAX 20 /* of one commit: a downstream may name as many runs as it likes */

/* What is known now; everything is borrowed. */
struct aggregate_view {
    const struct dispatch_view *dispatch;
    bool required;                    /* the downstream is at L4 now */
    const struct result_record *jobs; /* those of other deliveries are passed over */
    size_t n_jobs;
    bool more_jobs;     /* there are more than jobs holds */
    size_t unchecked;   /* (workflow, job) pairs that have no check run of their own, */
    int64_t checks_max; /* for no more have one */
    const struct run_answers *answers;
    int64_t now_ms;
    int64_t silent_ms;      /* nobody answers for so long: timed out */
    int64_t quiet_ms;       /* other CIs: nothing in progress for so long is the end */
    const char *public_url; /* of the pages; NULL: not known */
    bool forgive_known;     /* jobs that fail on main too do not make it fail: neutral */
};

/* Why it is not completed, or what completed it. */
enum aggregate_cause {
    AGGREGATE_SENT,       /* queued: dispatched, or perhaps */
    AGGREGATE_WAITING,    /* queued: the dispatch itself waits */
    AGGREGATE_REFUSED,    /* the dispatch failed */
    AGGREGATE_DROPPED,    /* superseded or skipped: no dispatch will come */
    AGGREGATE_SILENT,     /* no job ever reported */
    AGGREGATE_BUSY,       /* jobs are in progress */
    AGGREGATE_RUN_GOING,  /* every job ended; GitHub says that the run has not */
    AGGREGATE_MAY_FOLLOW, /* every job ended; of another CI, which does not say that it was all */
    AGGREGATE_ENDED,
    AGGREGATE_NOT_REQUIRED, /* the downstream is at L4 no more */
};

/* One run of the downstream's CI. */
struct run_sum {
    const char *run_id;
    bool actions;            /* of GitHub Actions */
    bool ended;              /* nothing more is expected of it */
    bool refused;            /* GitHub gives no answer about it: answer->error, or too many */
    bool busy;               /* a job is in progress */
    bool forgiven;           /* a job of it failed that is forgiven */
    bool said_complete;      /* run_complete */
    bool ask;                /* GitHub is to be asked now */
    const char *conclusion;  /* so far, the worst; NULL: none yet */
    const char *from_github; /* what GitHub said the run came to, or NULL */
    int64_t last_ms;         /* of what its jobs reported */
    int64_t attempt;         /* newest of its jobs */
    int64_t look_ms;         /* when to look again; 0: when something comes */
    const struct run_answer *answer; /* or NULL */
};

struct aggregate {
    enum aggregate_cause cause;
    bool started;                      /* false: only one that exists is kept up to date */
    const char *status;                /* as GitHub names it */
    const char *conclusion;            /* NULL unless completed */
    const struct result_record **jobs; /* that count, worst first */
    size_t n_jobs;
    size_t n_ended, n_bad, n_replaced;
    struct run_sum *runs;
    size_t n_runs;
    int64_t ended_ms; /* completed: when; 0 unknown */
    int64_t look_ms;  /* when to look again; 0: when something comes */
};

/* *ret is to be cleared before view's lists are. */
void aggregate_work_out(const struct aggregate_view *view, struct aggregate *ret);
void aggregate_clear(struct aggregate *a);
/* How well off a job is: 0 is the worst end, then those that run, then the good ends. */
size_t job_rank(const struct result_record *job);
/* What a run came to, as a check run can say it; static. */
const char *conclusion_shown(const char *conclusion);
/* True when a job or run that ended so keeps the aggregate from being green. */
bool conclusion_is_bad(const char *conclusion);

#endif
