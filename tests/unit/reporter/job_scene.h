/* A job of a level 4 downstream on pull request 42, for the tests of what becomes a check run.
 * Include after cmocka.h. */
#ifndef CRCR_TESTS_JOB_SCENE_H
#define CRCR_TESTS_JOB_SCENE_H

#include <stdlib.h>

#include "common/base/mem.h"
#include "common/model/result_record.h"

/* conclusion may be NULL. job is to be cleared. */
static inline void job_fill(struct result_record *job, enum job_state state, const char *conclusion)
{
    result_record_init(job);
    job->key = mem_dup("k");
    job->state = state;
    job->conclusion = mem_dup(conclusion);
    job->repo = mem_dup("org/four");
    job->level = 4;
    job->event_type = mem_dup("pull_request");
    job->pr_number = 42;
    job->workflow_name = mem_dup("ci");
    job->job_name = mem_dup("build: linux/x64");
    job->check_run_id = mem_dup("77-1");
    job->run_id = mem_dup("77");
    job->run_attempt = mem_dup("1");
}

/* Another value for one of its texts; value may be NULL. */
static inline void text_set(char **text, const char *value)
{
    free(*text);
    *text = mem_dup(value);
}

#endif
