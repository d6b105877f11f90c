/* The role reconcile: makes GitHub's check runs equal to what the view wants now. Level-triggered:
 * a record only says where to look; what is done follows from what is read at that moment. */
#ifndef CRCR_REPORTER_RECONCILE_H
#define CRCR_REPORTER_RECONCILE_H

#include <uthash.h>

#include "../common/github/check_runs.h"
#include "outage.h"
#include "reporter.h"

/* A commit and a downstream, and the records that call it dirty.
 *
 *   DIRTY ──pass──▶ BUSY ──all equal──▶ its records are done (DIRTY again when more came)
 *                    ├──limit, no answer, Redis unavailable──▶ WAITING ──due──▶ DIRTY
 *                    ├──GitHub is unavailable (outage.h)──▶ WAITING, and costs no attempt
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

struct reconcile {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct worker *worker;
    struct http_client *client;
    struct github *github;
    struct target *targets; /* by key */
    size_t n_busy;
    int64_t held_until_ms; /* monotonic: what the last pass that ended with PASS_HELD waits for */
    int64_t limited_until_ms; /* monotonic: GitHub asked us to wait */
    struct outage outage;
    bool view_lost;       /* the last pass found no consistent view */
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

/* Reads the view and starts what is to be done; pass_ended is called exactly once, perhaps before
 * this returns. reconcile_pass.c */
void pass_start(struct target *target);
/* True when the partition of the target goes, or another replica may have it by now, and may have
 * sent GitHub more than the pass under way knows of: the pass writes no more. */
bool target_is_old(const struct target *target);
/* Ends the pass of a target; text for people. With PASS_HELD held_until_ms of the reconcile says
 * until when. reconcile.c */
void pass_ended(struct target *target, enum pass_end end, const char *reason);

#endif
