/* What GitHub last said of the workflow runs of a commit and downstream (crcr:runs:<sha>/<repo>):
 * one hash, one field a run. It may be lost: GitHub is asked again. */
#ifndef CRCR_VIEW_RUNS_H
#define CRCR_VIEW_RUNS_H

#include "jobs.h"

enum run_said {
    RUN_SAID_NOTHING, /* no answer, or one that says to come later */
    RUN_SAID_GOING,
    RUN_SAID_COMPLETED,
    RUN_SAID_NO /* refused: no permission, or no such run */
};

struct run_answer {
    char run_id[RUN_ID_MAX + 1];
    enum run_said said;
    int64_t asked_ms;    /* wall clock */
    int64_t attempt;     /* that the answer is about */
    char conclusion[32]; /* RUN_SAID_COMPLETED */
    char error[200];     /* RUN_SAID_NO */
};

struct run_answers {
    struct run_answer *at;
    size_t n;
};
/* Frees the list; an empty one is fine. */
void run_answers_clear(struct run_answers *answers);
/* The answer of that run; NULL when it was never asked for. */
const struct run_answer *run_answer_find(const struct run_answers *answers, const char *run_id);
/* Copies the answer into the list, in the place of an earlier one of the same run. */
void run_answers_set(struct run_answers *answers, const struct run_answer *answer);

/* *ret is the caller's. */
enum err run_answers_get(struct redis *r, struct str sha, struct str repo, struct run_answers *ret,
                         struct why *why) MUST_CHECK;
enum err run_answer_put(struct redis *r, struct str sha, struct str repo,
                        const struct run_answer *answer, const struct view_times *times,
                        struct why *why) MUST_CHECK;

#endif
