/* Workflow runs of downstream repositories, as the Actions API shows them. What happens in a run
 * over time is in reaction.h.
 * https://docs.github.com/en/rest/actions/workflow-runs */
#ifndef CRCR_SIM_RUNS_H
#define CRCR_SIM_RUNS_H

#include <uthash.h>

#include "call.h"
#include "downstream.h"

enum run_status { RUN_QUEUED, RUN_IN_PROGRESS, RUN_COMPLETED };

struct run_job {
    int64_t id; /* the check run that Actions makes for the job */
    enum run_status status;
    const char *conclusion;
    int64_t started_ms, ended_ms;
};

struct run {
    UT_hash_handle hh; /* by id; in order of creation */
    int64_t id;
    int64_t number; /* of all runs, from 0 */
    char *repo;
    json_t *payload; /* client_payload, kept for re-runs as GitHub keeps it */
    struct downstream *settings;
    int64_t attempt;
    enum run_status status;
    const char *conclusion; /* NULL until completed */
    bool cancelled;
    int64_t created_ms, updated_ms;
    struct run_job jobs[DOWNSTREAM_JOBS];
};

struct runs;

/* keep: past so many of those that call back, or of the others, the oldest of them is forgotten. */
struct runs *runs_new(size_t keep);
void runs_free(struct runs *r);
void runs_reset(struct runs *r);
/* A new run of the repository; payload and settings are kept (one reference each is taken over). */
struct run *runs_add(struct runs *r, struct str repo, json_t *payload, struct downstream *settings,
                     int64_t now_ms);
/* NULL: there is none (any more). */
struct run *runs_find(struct runs *r, int64_t id);
/* Queues all jobs again, or only those that did not succeed. */
void run_requeue(struct runs *r, struct run *run, bool failed_only, int64_t now_ms);
/* Whether its downstream calls back in it. */
bool run_reports(const struct run *run);
/* In order of creation. */
json_t *runs_describe(const struct runs *r);

handler_fn runs_get;

#endif
