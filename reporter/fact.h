/* One record that the fold has in hand: what kind of fact it is, and what is still to be done with
 * it. */
#ifndef CRCR_REPORTER_FACT_H
#define CRCR_REPORTER_FACT_H

#include "../common/model/event.h"
#include "../common/model/task.h"
#include "../common/view/commits.h"
#include "../common/view/pull_requests.h"
#include "callback_fact.h"
#include "reporter.h"

enum fact_kind {
    FACT_CALLBACK,
    FACT_OUTCOME, /* of a dispatch: the view, and its claim */
    FACT_CLAIM,   /* of a re-run: its claim alone. Its jobs show it; the dispatch stays as it was */
    FACT_PULL_REQUEST,
    FACT_PUSH,
    FACT_NOTHING
};

/*        ┌──────────── one of its records was not stored ◀───────────┐
 *        ▼                                                           │
 *   FACT_READ ──folded, put──▶ FACT_PUBLISHING ──all acknowledged──▶ work_done
 *     │  ▲
 *     ▼  │ the dispatch is known; after 10 s: a delay topic, then the DLQ
 *   FACT_WAITING (its dispatch is not known; looked for each second) */
enum fact_state { FACT_READ, FACT_WAITING, FACT_PUBLISHING };
enum fact_step { FACT_FOLD, FACT_TO_DELAY, FACT_TO_DLQ };

struct fact {
    const struct record *record; /* borrowed */
    struct work *work;           /* of the fold; NULL in a rebuild */
    struct fold *fold;
    enum fact_kind kind;
    enum fact_state state;
    enum fact_step step;
    const char *class; /* of the dead-letter queue */
    char error[256];
    bool not_stored;       /* one of the records that follow from it */
    int64_t look_again_ms; /* not before; monotonic clock */
    int64_t give_up_ms;    /* FACT_WAITING; 0: it has not waited yet */

    struct callback_fact callback; /* FACT_CALLBACK */
    struct outcome outcome;        /* FACT_OUTCOME, FACT_CLAIM */
    bool claim_queued;             /* its claim is asked for in this round trip */
    struct pr_fact pr;             /* FACT_PULL_REQUEST; labels: those of ciflow/crcr */
    char *label_changed;           /* of these: the one that came or went, or NULL */
    struct push push;              /* FACT_PUSH: of the default branch, pushed_s set */

    struct fact *prev, *next; /* utlist */
};

/* Reads a record of callbacks, dispatches or events; what cannot be read gets the step
 * FACT_TO_DLQ. scratch is overwritten. The record is borrowed. */
struct fact *fact_new(const struct record *record, const struct reporter *reporter,
                      struct event_facts *scratch);
/* NULL is fine. */
void fact_free(struct fact *fact);
/* Decides that the record is moved aside, at its next turn. */
void fact_refuse(struct fact *fact, const char *class, const char *error);

#endif
