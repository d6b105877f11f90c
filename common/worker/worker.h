/* The one consumer loop: reads topics for a role, stores what follows from each record, and
 * commits.
 *
 *   topic ──▶ take(work) ──▶ the role ──┬─ work_put ──▶ topics ──┐
 *     ▲                                 ├─ work_park ─▶ delay.* ─┼─ all stored: offset committed
 *     │                                 ├─ work_dead ─▶ dlq ─────┘
 *     └─ read again by the next owner ◀─┴─ work_drop             (then work_done)
 *
 * The rules here hold for all roles. A record is finished only when the brokers have acknowledged
 * everything that was put for it. What is not acknowledged is written again until it is. A revoked
 * partition is drained first, for at most 20 s. A role that has enough in hand reads no more.
 * Records that were removed before they were read are logged and counted. Everything runs on the
 * role's own thread. */
#ifndef CRCR_WORKER_WORKER_H
#define CRCR_WORKER_WORKER_H

#include "../daemon/daemon.h"
#include "../io/topic_reader.h"
#include "../model/topics.h"

struct http_client;
struct worker;

/* One record in hand, or a part of one (work_share). */
struct work {
    struct record *record; /* borrowed until work_done or work_drop */
    void *user;            /* the role's */
};

/* What a role supplies. opaque is worker_options.opaque. */
struct worker_role {
    /* A record was read. It is the role's until work_done or work_drop, here or later. */
    void (*take)(void *opaque, struct work *work);
    /* Once a turn: starts what is due. Returns the milliseconds until something is due next;
     * records, reports, answers and a stop end that wait earlier. */
    int (*tick)(void *opaque);
    /* Its partition is being revoked, or the daemon stops: work_drop it, unless a call for it is in
     * flight. Then drop() is called again each turn until the work is done or dropped; after 20 s
     * another consumer may have it. Touches no other work. */
    void (*drop)(void *opaque, struct work *work);
    /* It ends unfinished with worker_free: free what the role holds for it. NULL: drop() has freed
     * all. */
    void (*forget)(void *opaque, struct work *work);
    /* True: read no more now. NULL: never. */
    bool (*full)(void *opaque);
};

/* Indices into the daemon's table of metrics. */
struct worker_metrics {
    size_t not_stored; /* label topic: writes that failed */
    size_t dlq;        /* labels role, class: stored in the DLQ */
    size_t delayed;    /* one label, of park.label: stored in a delay topic */
    size_t lost;       /* labels role, topic: removed before they were read */
};

struct worker_options {
    struct role_ctx *role;
    const struct kafka_options *kafka;
    const struct topics *topics; /* kept */
    enum group group;
    const enum topic *reads, *writes; /* all must exist; also the DLQ, which every role writes */
    size_t n_reads, n_writes;
    int max_in_hand; /* records and bytes of each partition, as in topic_reader_options */
    size_t max_in_hand_bytes;
    int message_timeout_ms;   /* of the writer; 0: its own */
    bool lingers;             /* as in topic_writer_options */
    struct http_client *http; /* polled in each turn; may be NULL */
    struct worker_metrics metrics;
    const struct worker_role *does; /* kept */
    void *opaque;
};

/* Opens the writer and waits for the topics; the role is alive and not ready meanwhile. ERR_STOP
 * names what is missing. */
enum err worker_new(struct worker **ret, const struct worker_options *options,
                    struct why *why) MUST_CHECK;
/* Begins to read, once. Until then worker_run only calls tick(). */
enum err worker_read(struct worker *w, struct why *why) MUST_CHECK;
/* The loop, until the daemon stops or Kafka cannot go on (ERR_STOP); then drains and leaves the
 * group. */
enum err worker_run(struct worker *w, struct why *why) MUST_CHECK;
/* Waits up to 5 s for records that are not stored yet, then frees. Close the role's own clients
 * before, so that none calls back any more. NULL is fine. */
void worker_free(struct worker *w);

/* Why the role is not ready although it reads, or NULL; copied. Shown by /readyz. */
void worker_not_ready(struct worker *w, const char *reason);
/* Ask before each effect of a decision made from data read at since_ms (clock_boot_ms). True: the
 * partitions have been ours ever since. False: the group's coordinator has not answered for 3 s, or
 * this process was paused since then (SIGSTOP, a suspended machine). Then drop the decision and
 * read the data again. Not detected: a pause between this call and the effect, and a pause of a
 * virtual machine whose clocks stop. */
bool worker_may_act(const struct worker *w, int64_t since_ms);
/* topic_reader_limit_span of its reader; 0: the default. */
void worker_limit_span(struct worker *w, size_t records);
/* How many records (or parts) are in hand, and the bytes of the records' values. */
size_t worker_in_hand(const struct worker *w);
size_t worker_in_hand_bytes(const struct worker *w);

/* ---- what follows from a record ---------------------------------------------------------------
 */

/* The brokers did not store it (err and reason say why). True: the role handles that, and it is not
 * written again. False: it is. Called from the loop only, never from inside work_put. */
typedef bool post_failed_fn(void *opaque, enum err err, const char *reason);

/* A counter that grows by one when the record is stored. */
struct post_count {
    size_t family;
    struct str a, b; /* labels; static. b is absent where the family has one label */
};

struct post {
    enum topic topic;
    int slot; /* the partition, as in struct new_record; 0: chosen from the key */
    struct str key;
    struct str value;
    bool lasting;                   /* value stays valid until stored: it is not copied */
    const struct headers *headers;  /* NULL: none */
    const struct post_count *count; /* copied; NULL: none */
    post_failed_fn *failed;         /* NULL: written again until it is stored */
    void *opaque;                   /* of failed */
};

/* Key and headers are copied; so is the value, unless it is lasting. */
void work_put(struct work *work, const struct post *post);
/* The same, but no record waits until it is stored. */
void worker_put(struct worker *w, const struct post *post);
/* Calls then(opaque) once all records put for it are stored, or a failed() returned true. Called
 * from the loop only. */
void work_then(struct work *work, void (*then)(void *opaque), void *opaque);
/* Finished: once all records put for it are stored, it ends and its offset may be committed. */
void work_done(struct work *work);
/* Given back: the next owner of its partition reads it again. */
void work_drop(struct work *work);
/* One more part of the record, which has its own posts, then() and end. The record ends with its
 * last part: finished if all parts were, given back if one was. From take() only. */
struct work *work_share(struct work *work);
/* Its worker's options. */
const struct worker_options *work_options(const struct work *work);
/* True once another consumer has its partition: it is not committed any more. For drop(). */
bool work_is_lost(const struct work *work);

/* Writes the record into the DLQ, with headers that say why. class: poison, refused or exhausted,
 * and static. A record too large for us to write is cut (dlq.h). The caller then calls work_done.
 */
void work_dead(struct work *work, const char *class, const char *error);
/* The same, with these headers instead of the record's; borrowed. */
void work_dead_as(struct work *work, const struct headers *headers, const char *class,
                  const char *error);
/* False: the record is too large to be parked. */
bool work_can_park(const struct work *work);

struct park {
    int64_t wait_ms; /* from now */
    int attempt;     /* the next attempt's number, as header; 0: unchanged */
    const char *error;
    const char *label;             /* of the metric; static */
    const struct headers *headers; /* instead of the record's own; NULL: those */
    struct str value;              /* instead of the record's own, lasting; ptr NULL: that */
};
/* Parks the record: writes it into the delay topic for that wait, from where it returns to the
 * topic that it was read from. False: it is too large, and goes to the DLQ as refused. The caller
 * then calls work_done. */
bool work_park(struct work *work, const struct park *park);

#endif
