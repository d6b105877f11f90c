/* A delivery with its dispatch, its jobs and what GitHub said of its runs, for the tests of
 * aggregate.c. Include after cmocka.h. */
#ifndef CRCR_TESTS_AGGREGATE_SCENE_H
#define CRCR_TESTS_AGGREGATE_SCENE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/model/known_failure.h"
#include "reporter/aggregate.h"

#define SENT_MS 1000000
#define SILENT  (6 * 3600 * 1000)
#define QUIET   (15 * 60 * 1000)
#define MAX     60

/* A delivery, what came of it, and what it sums up to. */
struct scene {
    struct dispatch_view dispatch;
    struct result_record jobs[MAX];
    struct run_answers answers;
    struct aggregate_view view;
    struct aggregate a;
};

static inline int start(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    s->dispatch = (struct dispatch_view){ .delivery = "d-1",
                                          .repo = "org/four",
                                          .pr = 42,
                                          .level = 4,
                                          .outcome = "dispatched",
                                          .dispatched_ms = SENT_MS,
                                          .at_ms = SENT_MS };
    s->view = (struct aggregate_view){
        .dispatch = &s->dispatch,
        .required = true,
        .jobs = s->jobs,
        .answers = &s->answers,
        .now_ms = SENT_MS + 60000,
        .silent_ms = SILENT,
        .quiet_ms = QUIET,
    };
    *state = s;
    return 0;
}

static inline int stop(void **state)
{
    struct scene *s = *state;
    aggregate_clear(&s->a);
    for (size_t i = 0; i < s->view.n_jobs; i++)
        result_record_clear(&s->jobs[i]);
    run_answers_clear(&s->answers);
    free(s);
    return 0;
}

/* conclusion NULL: in progress. at_ms after the dispatch: of the end, else of the start. */
static inline struct result_record *job(struct scene *s, const char *run_id, const char *name,
                                        const char *attempt, const char *conclusion, int64_t at_ms)
{
    struct result_record *r = &s->jobs[s->view.n_jobs++];
    char check[64];
    assert_true(s->view.n_jobs <= MAX);
    snprintf(check, sizeof(check), "%s-%s", run_id, attempt);
    result_record_init(r);
    r->repo = mem_dup("org/four");
    r->delivery_id = mem_dup("d-1");
    r->workflow_name = mem_dup("ci");
    r->job_name = mem_dup(name);
    r->run_id = mem_dup(run_id);
    r->run_attempt = mem_dup(attempt);
    r->check_run_id = mem_dup(check);
    r->conclusion = conclusion ? mem_dup(conclusion) : NULL;
    r->state = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS;
    r->in_progress_ms = SENT_MS + (conclusion ? at_ms - 1000 : at_ms);
    r->completed_ms = conclusion ? SENT_MS + at_ms : -1;
    return r;
}

/* Of a job that failed: it fails on main too, or for another reason. */
static inline struct known_failure *is_known(struct result_record *job, enum known_reason reason)
{
    job->known = mem_alloc(1, sizeof(*job->known));
    job->known->reason = reason;
    strcpy(job->known->since_sha, "9c1d1a2b3c4d");
    job->known->since_ms = SENT_MS;
    job->known->failed_ms = SENT_MS + 3 * 3600 * 1000;
    return job->known;
}

static inline void of_actions(struct result_record *job)
{
    job->issuer = mem_dup(CALLBACK_ISSUER_ACTIONS);
}

static inline void said(struct scene *s, enum run_said what, const char *conclusion,
                        int64_t attempt, int64_t at_ms)
{
    struct run_answer answer = { .run_id = "77", .said = what, .attempt = attempt };
    answer.asked_ms = SENT_MS + at_ms;
    snprintf(answer.conclusion, sizeof(answer.conclusion), "%s", conclusion);
    run_answers_set(&s->answers, &answer);
}

static inline void now(struct scene *s, int64_t at_ms)
{
    s->view.now_ms = SENT_MS + at_ms;
}

static inline const struct aggregate *sum(struct scene *s)
{
    aggregate_clear(&s->a);
    aggregate_work_out(&s->view, &s->a);
    return &s->a;
}

static inline void assert_open(struct scene *s, const char *status, enum aggregate_cause cause)
{
    const struct aggregate *a = sum(s);
    assert_string_equal(a->status, status);
    assert_null(a->conclusion);
    assert_int_equal(a->cause, cause);
}

static inline void assert_completed(struct scene *s, const char *conclusion)
{
    const struct aggregate *a = sum(s);
    assert_string_equal(a->status, "completed");
    assert_string_equal(a->conclusion, conclusion);
}

#endif
