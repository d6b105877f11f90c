/* Private to the sender: one task in hand, from the moment it is read until what became of it is
 * stored.
 *
 *   in lane ─▶ claiming ─▶ calling ─▶ answered ─▶ settled ─▶ stored ─▶ done
 *      ▲          │ busy                              │ wait ≤ 10 s
 *      └──────────┴───────────────────────────────────┘   everything on the tier's own thread
 *
 * Without Redis a call goes out without a claim, and is marked.
 *
 * Redis is asked in batches, one round trip each: the claims of all that start, of all that were
 * answered, of all that were stored since the last turn. */
#ifndef CRCR_DISPATCHER_SENDING_H
#define CRCR_DISPATCHER_SENDING_H

#include "../common/base/standstill.h"
#include "../common/github/github.h"
#include "../common/io/redis.h"
#include "../common/view/claims.h"
#include "breaker.h"
#include "dispatcher.h"
#include "lane.h"
#include "outbox.h"
#include "pace.h"
#include "retry.h"

/* Calls under way at once for one tier; GitHub's secondary limit is 100 for all of us. */
#define SENDER_IN_FLIGHT_MAX   64
/* Of these for one downstream: eight that hang leave the others theirs. */
#define SENDER_DOWNSTREAM_MAX  8
/* In hand of one partition; while Redis is unavailable nothing is read further past the oldest. */
#define SENDER_IN_HAND_RECORDS 200
/* How long what waits for a place of a slow downstream is put off at least. */
#define SENDER_SLOW_WAIT_MS    30000

struct sender {
    struct role_ctx *role;
    struct dispatcher *d;
    int level;
    struct str tier; /* "L1" … for metrics */
    struct http_client *client;
    struct github *github;
    struct redis *redis;
    struct redis *budget; /* asked for GitHub's budget while claims are being collected */
    struct outbox *outbox;
    struct topic_reader *reader;
    struct lanes *lanes;
    struct breakers *breakers;
    struct pace *pace; /* of what is put off */
    struct sending *all;
    struct sending *answered; /* not settled yet */
    struct sending *stored;   /* all that became of them is; not done yet */
    size_t n, in_flight;
    struct standstill standstill;
    int64_t claiming_ms;    /* monotonic: when the last batch was about to ask for its claims */
    uint64_t taken;         /* claims so far: makes each owner name unique */
    unsigned jitter;        /* state of rand_r */
    int64_t started_ms;     /* monotonic */
    int64_t ask_ms;         /* monotonic: the reader must be asked again */
    bool redis_unavailable; /* since the last batch of claims */
};

struct sending {
    struct lane_item item;                 /* first: a lane hands out these */
    struct sending *prev, *next;           /* in sender.all */
    struct sending *turn_prev, *turn_next; /* in sender.answered or .stored */
    struct sender *s;
    struct record *record;
    struct task task;            /* borrows from record */
    char owner[128];             /* of the claim; "" while this attempt has none */
    bool out;                    /* taken from its lane */
    bool probe;                  /* of an open breaker */
    bool calling;                /* GitHub has it */
    bool answered;               /* and its answer waits to be settled */
    bool lost;                   /* the partition is another's now: record is not ours to finish */
    bool ending;                 /* nothing follows but the storing of posts */
    bool told;                   /* its claim is done and must say so once posts are stored */
    size_t posts;                /* not stored yet */
    struct expanding *expanding; /* TASK_EXPAND, while it is under way */
    char nothing[160];           /* TASK_EXPAND: why nothing came of it; "" otherwise */
    struct retry retry;          /* what follows the answer */
    int64_t claimed_ms;          /* wall clock; until the call ends it counts as dispatched_at */
    int64_t signed_ms;           /* wall clock: what the callback token says; 0: there is none */
    struct outcome outcome;
};

/* Whether a later event of its pull request makes it needless. What is replayed --again is wanted
 * although it is old; it neither is superseded nor supersedes. */
bool sending_can_be_superseded(const struct task *task);
/* A record of the tier's topic is read: its task goes into its lane, or the record into the dlq. */
void sending_read(struct sender *s, struct record *record);
/* Takes what is due, claims it and calls GitHub, up to SENDER_IN_FLIGHT_MAX. */
void sendings_start(struct sender *s);
/* Answers that came without a call: the claim's, the allowlist's. */
void sending_skip(struct sending *g, enum outcome_kind kind, const char *reason);
void sending_repeat(struct sending *g, const struct outcome *stored);
/* No call now, which spends no attempt. reason is for people. */
void sending_postpone(struct sending *g, int64_t until_ms, const char *reason);
/* It asks nothing of its downstream now: when it is the probe, another may be it. */
void sending_unasked(struct sending *g);
/* GitHub's answer (settle.c). Decides what follows and leaves the rest to sendings_settle. */
void sending_answered(void *opaque, const struct github_answer *answer);
/* Expands a task that is claimed and counted as calling; ends in sending_answered (expanding.c). */
void expanding_start(struct sending *g);
/* Leaves what is under way. NULL is fine. */
void expanding_drop(struct expanding *e);
/* Tells the claims of what was answered and stored since, and goes on with them. */
void sendings_settle(struct sender *s);
/* True while sendings_settle has something to do. */
bool sendings_unsettled(const struct sender *s);
/* Gives the record back unfinished; nothing of it is under way. */
void sending_drop(struct sending *g);
/* 0…1 */
double sender_jitter(struct sender *s);

#endif
