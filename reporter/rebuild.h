/* Makes the view consistent again, on the fold's thread and a piece at a time, so that the fold's
 * membership, health and SIGTERM go on meanwhile. One replica holds the lease (common/view/epoch.h)
 * and works; the others wait for the epoch.
 *
 *   LOOKING ──no epoch, lease taken─▶ READING ──all is read─▶ FINISHING ──stored─▶ CONSISTENT
 *      ▲ ▲                               │                        │                  │
 *      │ └── Redis or Kafka unavailable, lease lost: from the beginning              │
 *      └───────────────────────── the epoch is gone ◀────────────────────────────────┘
 *
 * Everything that is written is a join: twice, in any order, or half is no harm. */
#ifndef CRCR_REPORTER_REBUILD_H
#define CRCR_REPORTER_REBUILD_H

#include "fact.h"

struct rebuild;

/* redis and scratch are borrowed for its life; all of one thread. */
struct rebuild *rebuild_new(const struct reporter *reporter, struct role_ctx *role,
                            struct redis *redis, struct event_facts *scratch);
/* Gives the lease back when it holds it. */
void rebuild_free(struct rebuild *b);

/* Whether the view was consistent when last looked; looks once a second, or at once after
 * rebuild_look. While it is not, works for some 100 ms (a broker that does not answer costs 5 s).
 * Not OK: Redis did not answer the last look. */
enum err rebuild_turn(struct rebuild *b, bool *consistent, struct why *why) MUST_CHECK;
/* Looks again at the next turn: a fold was refused because the view is inconsistent, or Redis is
 * back.
 */
void rebuild_look(struct rebuild *b);
/* True when rebuild_turn should be called again without waiting. */
bool rebuild_is_busy(const struct rebuild *b);

/* Marks in reconcile what is to be looked at again. payer: whose rate pays for the question whether
 * a commit exists; NULL where there is none. */
void rebuild_mark(struct rebuild *b, const char *head_sha, const char *repo, const char *payer);

/* ---- rebuild_fold.c: from records to the view -------------------------------------------------
 */

enum rebuild_part {
    REBUILD_DISPATCHES, /* first: claims keep a dispatch from being repeated */
    REBUILD_RESULTS,
    REBUILD_EVENTS,
    REBUILD_CALLBACKS, /* last: a pending one asks for its dispatch */
    REBUILD_PARTS
};

/* Commands that are queued at Redis and not collected yet. */
#define REBUILD_BATCH       256
#define REBUILD_BATCH_BYTES (1u << 20)
typedef enum err rebuild_collect_fn(struct redis *redis, struct why *why);
struct rebuild_batch {
    rebuild_collect_fn *collect[REBUILD_BATCH + 2]; /* a record queues at most two */
    size_t n, bytes;
};

struct rebuild_fold {
    const struct reporter *reporter;
    struct redis *redis;
    struct event_facts *scratch;
    int64_t fence, now_ms; /* wall clock, of the beginning of the batch */
    struct rebuild_batch batch;
    struct rebuild *rebuild; /* whose rebuild_mark is called */
};

/* Queues what a record says; what cannot be read, has outlived CRCR_STATUS_TTL or says nothing is
 * passed over. Collects by itself when it has to ask. */
enum err rebuild_fold_record(struct rebuild_fold *f, enum rebuild_part part,
                             const struct record *record, struct why *why) MUST_CHECK;
/* Collects all that is queued; the first error, after all was collected. */
enum err rebuild_fold_collect(struct rebuild_fold *f, struct why *why) MUST_CHECK;

#endif
