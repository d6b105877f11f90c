/* Private to the sender: the tasks of one tier → GitHub. sender.c is its loop, task_start.c
 * which tasks start, superseded.c which need not, task_in_hand.c what happens to one,
 * dispatch_decide.c why, task_record.c the record that it came in with others, rerun_expand_task.c
 * a task of kind expand. README.md draws the states of a task.
 *
 * Redis is asked in batches, one round trip each: the claims of all that start, and of all that are
 * decided since the last turn. Everything is on the tier's own thread. */
#ifndef CRCR_DISPATCHER_SENDER_H
#define CRCR_DISPATCHER_SENDER_H

#include "../common/io/redis.h"
#include "../common/worker/worker.h"
#include "dispatch_decide.h"
#include "dispatcher.h"
#include "lane.h"
#include "route.h"

/* At most so many calls at once, per tier and process; the gate has the limit of all, for each
 * account (common/github/gate.h). */
#define SENDER_IN_FLIGHT_MAX   64
/* Of these for one downstream: eight that hang leave 56 to the others. */
#define SENDER_DOWNSTREAM_MAX  8
/* Records in hand per partition. While Redis is unavailable also the most that are read past the
 * oldest open one: a crash repeats these calls. */
#define SENDER_IN_HAND_RECORDS 200
/* Tasks in hand of all partitions: about 2 KB each. */
#define SENDER_IN_HAND_TASKS   4096

struct task_record;

struct sender {
    struct role_ctx *role;
    struct dispatcher *d;
    int level;
    struct str tier; /* "L1" … for metrics */
    struct clients clients;
    struct worker *worker;
    struct lanes *lanes;
    struct task_in_hand *finishing; /* DECIDED: their claims are next */
    struct task_record *leaving;    /* all their remaining tasks are LEAVING */
    size_t in_flight;               /* CALLING */
    int64_t claiming_ms;    /* clock_boot_ms: when the last batch was about to ask for its claims */
    uint64_t claims;        /* so far: makes each owner name unique */
    unsigned jitter;        /* state of rand_r */
    bool redis_unavailable; /* since the last batch of claims */
};

enum task_state {
    TASK_IN_LANE,  /* waits for its turn, or for its time */
    TASK_CLAIMING, /* Redis is asked for its claim */
    TASK_CALLING,  /* in flight at GitHub, or being expanded */
    TASK_DECIDED,  /* what follows is known; its claim ends first */
    TASK_LEAVING,  /* written with the rest of its record, once no task of that is in work */
};
enum task_exit {
    EXIT_PARK, /* into a delay topic, until decision.until_ms */
    EXIT_BACK, /* into the topic of the tier, at once: its partition is revoked */
};

struct task_in_hand {
    struct lane_item item;            /* first: a lane hands out these */
    struct task_in_hand *prev, *next; /* in sender.finishing */
    struct sender *s;
    struct task_record *record; /* it came in */
    struct work *work;          /* its part of that */
    struct task task;           /* borrows from the work's record */
    enum task_state state;
    enum task_exit exit;               /* LEAVING */
    char owner[128];                   /* of the claim; "" while this attempt has none */
    struct claim_call called;          /* the call of which it is a duplicate */
    struct dispatch_decision decision; /* from DECIDED on, also while it waits IN_LANE for its next
                                          attempt; its reason is in outcome.error */
    struct outcome outcome;
    int64_t signed_ms;          /* wall clock: what the callback token says; 0: no token */
    bool reserved, paid;        /* its call: in flight for the gate already, paid with its claim */
    struct expand_task *expand; /* TASK_EXPAND, while CALLING */
};

/* A record of the tier's topic was read: its tasks go into their lanes, or the record to the DLQ.
 */
void tasks_take(struct sender *s, struct work *work);
/* Its partition is revoked: it is given back (task_record_give_back), unless its call is in flight.
 */
void task_drop(struct task_in_hand *t);
/* Frees it; what is in hand is given back by the worker. NULL is fine. */
void task_forget(struct task_in_hand *t);

/* Its call is not made, or is another: it counts as in flight no longer. */
void task_unreserve(struct task_in_hand *t);
/* Does what was decided before a call. */
void task_follow(struct task_in_hand *t, const struct dispatch_decision *decision);
/* 0…1 */
double sender_jitter(struct sender *s);

/* Takes what is due, claims it and calls GitHub, up to SENDER_IN_FLIGHT_MAX (task_start.c). */
void tasks_start(struct sender *s);
/* Ends the claims of what is decided, and publishes what follows. */
void tasks_finish(struct sender *s);

/* GitHub's answer, to a call or to a question of an expand. */
void task_answered(void *opaque, const struct github_answer *answer);
/* What is CALLING ends without an answer, or with what followed from one. The reason is copied. */
void task_decided(struct task_in_hand *t, const struct dispatch_decision *decision);

/* True when the view says that the run to repeat, on the commit of the task, is of a CI other than
 * GitHub Actions: these may number their runs, too. False also without the view: then GitHub is
 * asked, which knows no such run. */
bool rerun_is_of_other_ci(const struct task_in_hand *t, const struct route *rerun);

/* Begins to expand a task that is CALLING; ends in task_answered or task_decided. */
void expand_task_start(struct task_in_hand *t);
/* NULL is fine. */
void expand_task_free(struct expand_task *e);

#endif
