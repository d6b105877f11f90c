/* Jobs in the view: the fold of one fact into one job (fold.lua), and what the pages, the
 * reconciler and ingest read of them. */
#ifndef CRCR_VIEW_JOBS_H
#define CRCR_VIEW_JOBS_H

#include "../io/redis.h"
#include "../model/callback.h"
#include "../model/result_record.h"

/* How long what is folded stays, and when a job in progress counts as lost. */
struct view_times {
    int64_t ttl_s;      /* CRCR_STATUS_TTL */
    int64_t overdue_ms; /* ZOMBIE_TIMEOUT_SECONDS */
    int64_t fence;      /* of the rebuild that folds (epoch.h); 0: the view must be consistent */
    int64_t quota;      /* what a downstream may have of the view, in bytes (quota.h) */
};

enum fold_verdict { FOLD_RAISE, FOLD_REPEAT, FOLD_FILL, FOLD_FULL };
/* For logs and metric labels. */
const char *fold_verdict_name(enum fold_verdict verdict);

/* All folds into the view fail with ERR_REFUSE and view_is_inconsistent() when times->fence does
 * not allow them (epoch.h): nothing was changed then.
 *
 * Queues the fold of one fact: fact->state is what it reports (in progress, timed out, completed),
 * key, repo, delivery_id and run_attempt are set. Everything is borrowed for the call. Collect in
 * the order of queueing. */
enum err job_fold_queue(struct redis *r, const struct result_record *fact, int64_t received_ms,
                        const struct view_times *times, struct why *why) MUST_CHECK;
/* The same for a merged record of the topic results: joins it to what is there, so that its facts
 * need not be folded. first_ms and last_ms are set; without ranks any fact beats it. */
enum err job_restore_queue(struct redis *r, const struct result_record *record,
                           const struct view_times *times, struct why *why) MUST_CHECK;
/* Of what job_fold_queue queued, with the same fact: the merged record, times computed; *ret is
 * initialised here and the caller's after OK. FOLD_FULL: the downstream has used up its part of the
 * view, and this job is not in it; *ret is the fact. In a rebuild view_fold_collect does. */
enum err job_fold_collect(struct redis *r, const struct result_record *fact, int64_t received_ms,
                          enum fold_verdict *verdict, struct result_record *ret,
                          struct why *why) MUST_CHECK;

/* True for a member of crcr:delivery:* that is a job; the others are repositories. */
bool is_job_key(struct str member);

/* Some jobs, the caller's. */
struct job_list {
    struct result_record *at;
    size_t n;
};
void job_list_clear(struct job_list *list);

/* All jobs of a commit and downstream (fold.lua keeps 1,000), in the order of their keys. */
enum err jobs_of_head(struct redis *r, struct str sha, struct str repo, struct job_list *ret,
                      struct why *why) MUST_CHECK;
/* The first jobs of a delivery by time, at most limit, and behind them those of nightly and
 * periodic runs that name it: these push none of the others out. Failed tests and verdicts come
 * with at most full_max of them, those that failed: a bad day of a large project would not fit into
 * memory. */
enum err jobs_of_delivery(struct redis *r, struct str delivery, size_t limit, size_t full_max,
                          struct job_list *ret, struct why *why) MUST_CHECK;
#define HEAD_JOBS_MAX 1000 /* of a commit and downstream, as fold.lua keeps */
/* The first jobs of one downstream in a delivery by time, at most limit, however many its commit
 * has; without failed tests and verdicts. A delivery "run:<run id>", as in crcr:tally: those of
 * that nightly or periodic run, at most 1,000. */
enum err jobs_of_dispatch(struct redis *r, struct str delivery, struct str repo, size_t limit,
                          struct job_list *ret, struct why *why) MUST_CHECK;
/* Adds what the run of the first job has of its commit under other deliveries, when that is a
 * nightly or periodic one; without failed tests and verdicts. On an error jobs stay as they are. */
enum err jobs_of_self_run_add(struct redis *r, struct job_list *jobs, struct why *why) MUST_CHECK;
#define REPO_JOBS_MAX 1000 /* of a downstream, as fold.lua keeps */
/* The newest jobs of a downstream, at most limit, newest first; without failed tests and verdicts.
 * pulls: of pull requests alone. last_ms of each: when its newest fact was received. */
enum err jobs_of_repo(struct redis *r, struct str repo, bool pulls, size_t limit,
                      struct job_list *ret, struct why *why) MUST_CHECK;
/* The page of that list that follows before_ms (0: the first), limit long: where it begins, and
 * *end. It ends between two times, so that the next one, which follows the last_ms of its last job,
 * passes none over. PURE. */
size_t job_list_page(const struct job_list *list, int64_t before_ms, size_t limit, size_t *end);

/* The first of these that failed and are not replaced, at most `most`, read again with failed tests
 * and verdicts. */
enum err jobs_failed_in_full(struct redis *r, const struct job_list *jobs, size_t most,
                             struct job_list *ret, struct why *why) MUST_CHECK;
/* Jobs whose keys are every step-th of n strings of a reply; without failed tests and verdicts. */
enum err jobs_of_members(struct redis *r, const struct redis_value *items, size_t n, size_t step,
                         struct job_list *ret, struct why *why) MUST_CHECK;

/* True when the job has a field from a fact of that attempt, state and time: it was folded. */
enum err job_has_fact(struct redis *r, const struct result_record *fact, int64_t received_ms,
                      bool *ret, struct why *why) MUST_CHECK;

/* For ingest's best-effort answer (duplicate, 409): the state of one attempt of a job. Not found
 * also when the view has another attempt under that key: it says nothing about this one. */
enum err job_state_get(struct redis *r, struct str job_key, struct str run_attempt, bool *found,
                       enum job_state *state, char conclusion[32], struct why *why) MUST_CHECK;

#endif
