/* How each downstream repository behaves when it is dispatched to: a table of settings, the first
 * whose glob is the repository's counts. README.md documents the fields. */
#ifndef CRCR_SIM_DOWNSTREAM_H
#define CRCR_SIM_DOWNSTREAM_H

#include "../../common/base/err.h"
#include "../../common/base/str.h"

typedef struct json_t json_t;
struct downstreams;

/* Which of a job's two callbacks come, and how. */
enum answer_mode {
    ANSWER_NORMAL,    /* in_progress, then completed */
    ANSWER_NEVER,     /* none */
    ANSWER_START,     /* in_progress only */
    ANSWER_END,       /* completed only */
    ANSWER_DUPLICATE, /* each twice */
    ANSWER_REVERSED,  /* completed, then in_progress */
};

/* One job of the workflow. Text is borrowed from the settings' source. */
struct job_setting {
    const char *name;
    const char *conclusion;
    const char *again; /* conclusion of later attempts; NULL: the same */
    enum answer_mode answer;
    int64_t delay_ms;      /* dispatch → start */
    int64_t run_ms;        /* start → end */
    const json_t *tests;   /* test_results; may be NULL */
    const json_t *details; /* further fields of `workflow`; may be NULL */
};

#define DOWNSTREAM_JOBS 32

/* Counted: a run keeps the settings that it began with. */
struct downstream {
    int refs;
    json_t *source;
    const char *repo; /* glob */
    bool installed;   /* the App is */
    bool reports;     /* false: the workflow runs, but does not call back (L1) */
    int64_t every;    /* only each so-manieth run reports */
    const char *workflow;
    int64_t after_ms;       /* last job's end → the run's */
    int64_t retries;        /* of a callback, on 5xx, 429 and network errors */
    int64_t retry_delay_ms; /* unless Retry-After says longer */
    const json_t *claims;   /* changes to the OIDC claims; may be NULL */
    size_t n_jobs;
    struct job_setting jobs[DOWNSTREAM_JOBS];
};

/* Begins with one setting for all: installed, one job "test" that succeeds after 300 ms. */
struct downstreams *downstreams_new(void);
void downstreams_free(struct downstreams *d);
/* Puts the settings (an object or an array) in front of those that are there. ERR_REFUSE: all or
 * none. */
enum err downstreams_add(struct downstreams *d, const json_t *settings, struct why *why) MUST_CHECK;
void downstreams_reset(struct downstreams *d);
/* The settings of that repository; the caller's to release. NULL: none. */
struct downstream *downstreams_find(struct downstreams *d, struct str repo);
void downstream_release(struct downstream *settings);
bool downstreams_installed(struct downstreams *d, struct str repo);
json_t *downstreams_describe(const struct downstreams *d);

#endif
