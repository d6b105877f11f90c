/* One pass over one commit and downstream: read the view (reconcile_view.c), ask GitHub about runs,
 * plan (reconcile_plan.h), carry the plan out one action after the other (reconcile_pass.c;
 * comments in reconcile_comment.c). What is wanted does not change while the plan is carried out.
 */
#ifndef CRCR_REPORTER_RECONCILE_PASS_H
#define CRCR_REPORTER_RECONCILE_PASS_H

#include "../common/view/dispatches.h"
#include "../common/view/runs.h"
#include "reconcile.h"
#include "reconcile_plan.h"

#define AGGREGATE_JOBS_MAX 2000 /* looked at for an aggregate */

/* The comment at hand. */
struct pass_comment {
    bool leased;
    bool searched; /* for it, at GitHub */
    char *repo;    /* as the allowlist writes it */
    struct buf text;
    enum oncall_word word;
    char digest[17];
    struct comment_sent sent;
};

struct pass {
    struct target *target;

    /* What was read. */
    struct job_list jobs;
    struct job_list more; /* of the dispatch, when those of the commit are too many for its set */
    bool has_dispatch;
    struct dispatch_view dispatch;
    struct run_answers answers;
    char asking[RUN_ID_MAX + 1]; /* the run that GitHub is being asked about */

    /* What is wanted, and what was sent of each as the pass began: nobody else sends for this
     * target while it is ours (target_is_old). */
    struct wanted_check *wanted; /* the aggregate's, if there is one, is the last */
    struct check_sent *sent;
    size_t n;
    bool may_start;   /* the aggregate */
    size_t unchecked; /* (workflow, job) pairs beyond CRCR_JOB_CHECKS_MAX */

    /* The plan, once there is one, and how far it is. */
    struct action *actions;
    size_t n_actions, at;
    bool begun;           /* the action at hand */
    struct check_has has; /* of its check run */
    struct pass_comment comment;

    /* How it will end. */
    int64_t look_ms; /* wall clock: when to look again; 0: when something comes */
    bool over;       /* with end, after what is under way; not with the rest of the plan */
    enum pass_end end;
    bool refused, failed;
    int64_t held_ms;  /* monotonic: when our budget may have room for what was left out; 0: none */
    char reason[512]; /* of the first refusal, or of the failure; as long as a why */
};

static inline struct action *action_at(const struct pass *p)
{
    return &p->actions[p->at];
}

static inline struct str upstream_of(const struct pass *p)
{
    return str_of(p->target->reconcile->reporter->upstream_repo);
}

/* Reads the view: the jobs, what is wanted of them now, and what was sent before. */
enum err pass_view_read(struct pass *p, struct why *why) MUST_CHECK;

/* Makes the plan. False: GitHub is being asked about a run first, for the aggregate depends on it;
 * pass_step goes on from there. */
bool pass_plan(struct pass *p);

/* Goes on after an answer; may end the pass, and free it. */
void pass_step(struct pass *p);
/* Counts a call to GitHub: about check runs, or about the rest. */
void pass_count(struct pass *p, const char *call, bool check_run,
                const struct github_answer *answer);
/* Ends the pass without the rest of the plan. */
void pass_stop(struct pass *p, enum pass_end end, const char *reason);
/* The same after a call to Redis: waiting heals a Redis that is unavailable, but not one that
 * refuses. */
void pass_redis_failed(struct pass *p, enum err err, const struct why *why);
/* What the answer to the action at hand means for the pass. True: it worked, and what follows is
 * the caller's. Otherwise it is noted, and the pass has moved on. */
bool pass_answered(struct pass *p, const struct github_answer *answer);
/* The action at hand is finished. */
void pass_next(struct pass *p);

/* Does ACTION_COMMENT: the action becomes the call that is to be made, or is finished. */
void comment_prepare(struct pass *p);
/* Starts the call of the action at hand; the pass may be over instead (Redis). */
enum err comment_call(struct pass *p, struct why *why) MUST_CHECK;
/* Gives back the lease and frees the text; nothing happens when there is none. */
void comment_end(struct pass *p);

#endif
