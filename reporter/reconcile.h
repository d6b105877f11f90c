/* The role reconcile: makes GitHub's check runs equal to what the view wants now. Level-triggered:
 * a record only says where to look; what is done follows from what is read at that moment. */
#ifndef CRCR_REPORTER_RECONCILE_H
#define CRCR_REPORTER_RECONCILE_H

#include <uthash.h>

#include "../common/github/check_runs.h"
#include "../common/view/dispatches.h"
#include "../common/view/known_failures.h"
#include "../common/view/runs.h"
#include "ended_runs.h"
#include "reconcile_plan.h"
#include "reporter.h"

/* A commit and a downstream, and the records that call it dirty.
 *
 *   DIRTY ──pass──▶ BUSY ──all equal──▶ its records are done (DIRTY again when more came)
 *                    ├──limit, no answer, Redis unavailable──▶ WAITING ──due──▶ DIRTY
 *                    ├──the breaker is open (gate.h)──▶ WAITING, and costs no attempt
 *                    ├──our budget is used up──▶ WAITING ──due, or more came──▶ DIRTY
 *                    └──refused, or too often in vain──▶ parked or in the DLQ, its records are done
 */
enum target_state { TARGET_DIRTY, TARGET_BUSY, TARGET_WAITING };

struct dirty {
    struct target *target;
    struct work *work;
    bool taken; /* was there when the pass began */
    struct dirty *prev, *next;
};

struct target {
    struct reconcile *reconcile;
    char *key;
    char head_sha[SHA_MAX + 1];
    char repo[REPO_MAX + 1];
    enum target_state state;
    struct dirty *records;
    int failures;     /* passes in a row that did not get through */
    int64_t due_ms;   /* WAITING: monotonic clock */
    int64_t began_ms; /* its last pass; clock_boot_ms */
    bool held;        /* WAITING for our budget: what costs another part of it may go */
    bool leaving;     /* its partition goes: the pass ends after the call under way */
    UT_hash_handle hh;
};

#define BUSY_MAX 8 /* commits worked on at the same time */

struct reconcile {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct worker *worker;
    struct http_client *client;
    struct github *github;
    struct target *targets; /* by key */
    struct target *busy[BUSY_MAX];
    size_t n_busy;
    int64_t limited_until_ms; /* monotonic: GitHub asked us to wait */
    bool view_lost;           /* the last pass found no consistent view */
    struct known_cache known;
    int64_t view_look_ms; /* then none begins before; monotonic clock */
};

/* What a pass came to. */
enum pass_end {
    PASS_EQUAL,   /* GitHub says what the view wants */
    PASS_WAIT,    /* later, without spending an attempt (limit, Redis unavailable, stopping) */
    PASS_FAILED,  /* no answer: later, and count it */
    PASS_REFUSED, /* GitHub will not take it */
    PASS_HELD,    /* our budget is used up for the rest of it: later, without an attempt */
};

/* True when the partition of the target goes, or another replica may have it by now, and may have
 * sent GitHub more than the pass under way knows of: the pass writes no more. */
bool target_is_old(const struct target *target);
/* True when the upstream is asked whether it has the commit that self-reports name. */
bool target_is_of_self_reports(const struct target *target);
/* Ends the pass of a target; text for people. held_until_ms: of PASS_HELD; monotonic clock. */
void pass_ended(struct target *target, enum pass_end end, int64_t held_until_ms,
                const char *reason);

/* ---- one pass ---------------------------------------------------------------------------------
 *
 * Read the view (reconcile_view.c), ask GitHub about runs, plan (reconcile_plan.h), carry the plan
 * out one action after the other (reconcile_pass.c; comments in reconcile_comment.c). What is
 * wanted does not change while the plan is carried out. */

/* The comment at hand. */
struct pass_comment {
    int64_t lease_expires_ms; /* 0: we have none */
    bool searched;            /* for it, at GitHub */
    char *repo;               /* as the allowlist writes it */
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
    struct open_runs open;       /* of jobs */
    int64_t open_look_ms;        /* when to look at them again; 0: when something comes */

    /* What is wanted, and what was sent of each as the pass began: nobody else sends for this
     * target while it is ours (target_is_old). */
    struct wanted_check *wanted; /* the aggregate's, if there is one, is the last */
    struct check_sent *sent;
    size_t n;
    bool required;    /* the aggregate: the downstream is at L4 */
    bool past;        /* likewise: the pull request went on to another head */
    bool sent_known;  /* the view was not lost since the delivery came */
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

/* Reads the view and starts what is to be done; pass_ended is called exactly once, perhaps before
 * this returns. */
void pass_start(struct target *target);
/* Reads the view: the jobs, what is wanted of them now, and what was sent before. */
enum err pass_view_read(struct pass *p, struct why *why) MUST_CHECK;

/* Makes the plan, and ends the open jobs of runs that have ended. False: GitHub is being asked
 * about a run first, for the aggregate or an open job depends on it; pass_step goes on from there.
 */
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
/* True when GitHub will refuse the action at hand each time: a content that it does not take, a
 * comment on a locked pull request. It is noted, and not tried again. */
bool pass_refused_for_good(const struct pass *p, const struct github_answer *answer);
/* The action at hand is finished. */
void pass_next(struct pass *p);

/* Does ACTION_COMMENT: the action becomes the call that is to be made, or is finished. */
void comment_prepare(struct pass *p);
/* Starts the call of the action at hand; the pass may be over instead (Redis). */
enum err comment_call(struct pass *p, struct why *why) MUST_CHECK;
/* Gives back the lease and frees the text; nothing happens when there is none. */
void comment_end(struct pass *p);

#endif
