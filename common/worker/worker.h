/* The one consumer loop: reads topics for a role, stores what follows from each record, and
 * commits.
 *
 *   topic ──▶ take(work) ──▶ the role ──┬─ work_put ──▶ topics ──┐
 *     ▲                                 ├─ work_park ─▶ delay.* ─┼─ all stored: offset committed
 *     │                                 ├─ work_dead ─▶ dlq ─────┘
 *     └─ read again by the next owner ◀─┴─ work_drop             (then work_done)
 *
 * The rules that live here and nowhere else: a record is finished only when everything that was put
 * for it is acknowledged by the brokers; what is not acknowledged is written again until it is; a
 * partition that is revoked is drained first, 20 s at most; a role that has enough in hand reads
 * nothing; what was removed before it was read is logged and counted. Everything happens on the
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
    /* Once a turn: starts what is due. Returns for how many milliseconds nothing is; records,
     * reports, answers and a stop end the wait earlier. */
    int (*tick)(void *opaque);
    /* Its partition is being revoked, or the daemon stops: work_drop it, unless something of it
     * is under way, which may end. Then it is asked again each turn until it is done or dropped;
     * after 20 s another may have it. Touches no other work. */
    void (*drop)(void *opaque, struct work *work);
    /* It ends unfinished with worker_free: what the role holds for it is to be freed. NULL: the
     * role holds nothing that drop() would not have freed. */
    void (*forget)(void *opaque, struct work *work);
    /* True while nothing more is to be read. NULL: never. */
    bool (*full)(void *opaque);
};

/* Indices into the daemon's table of metrics. */
struct worker_metrics {
    size_t not_stored; /* label topic: what the brokers did not acknowledge */
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
/* Begins to read, if it has not begun. Before it worker_run only ticks. */
enum err worker_read(struct worker *w, struct why *why) MUST_CHECK;
/* The loop, until the daemon stops or Kafka cannot go on (ERR_STOP); then drains and leaves the
 * group. */
enum err worker_run(struct worker *w, struct why *why) MUST_CHECK;
/* Waits up to 5 s for what is not stored yet, and frees. The role's own clients are closed before,
 * so that nothing calls back any more. NULL is fine. */
void worker_free(struct worker *w);

/* Why the role is not ready although it reads, or NULL; copied. /readyz says so. */
void worker_not_ready(struct worker *w, const char *reason);
/* Before each effect that follows from what was read at since_ms (clock_boot_ms): whether the
 * partitions are surely still ours, and nobody can have had them since. False while the group's
 * coordinator has not answered for 3 s, and when this process was paused (SIGSTOP, a suspended
 * machine) since then: drop what was decided, and read again what it goes by. A pause between this
 * call and the effect goes unseen, and so does one of a virtual machine whose clocks stop. */
bool worker_may_act(const struct worker *w, int64_t since_ms);
/* topic_reader_limit_span, of the reader; 0: as it began. */
void worker_limit_span(struct worker *w, size_t records);
/* How many are in hand. */
size_t worker_in_hand(const struct worker *w);

/* ---- what follows from a record ---------------------------------------------------------------
 */

/* The brokers did not store it (err and reason say why). True: the role makes up for it, and it is
 * not written again. False: it is. From the loop only, never from inside work_put. */
typedef bool post_failed_fn(void *opaque, enum err err, const char *reason);

/* A counter that grows by one when the record is stored. */
struct post_count {
    size_t family;
    struct str a, b; /* labels; static. b is absent where the family has one label */
};

struct post {
    enum topic topic;
    int slot; /* of topic_writer_put_in; 0: the partition is chosen from the key */
    struct str key;
    struct str value;
    bool lasting;                   /* value stays where it is until stored: it is not copied */
    const struct headers *headers;  /* NULL: none */
    const struct post_count *count; /* copied; NULL: none */
    post_failed_fn *failed;         /* NULL: written again until it is stored */
    void *opaque;                   /* of failed */
};

/* Key and headers are copied; so is the value, unless it is lasting. */
void work_put(struct work *work, const struct post *post);
/* The same, but no record waits for it. */
void worker_put(struct worker *w, const struct post *post);
/* Calls then(opaque) once all that was put for it is stored or given up by a failed(). From the
 * loop only. */
void work_then(struct work *work, void (*then)(void *opaque), void *opaque);
/* Finished: it ends, and its offset may be committed, once all that was put for it is stored. */
void work_done(struct work *work);
/* Given back: it is read again by whoever has its partition. */
void work_drop(struct work *work);
/* One more part of the record, with its own posts, then and end. The record ends with its last
 * part: it is finished when all were, and given back when one was. From take() only. */
struct work *work_share(struct work *work);
/* Of its worker. */
const struct worker_options *work_options(const struct work *work);
/* True once its partition is another's: nothing of it is committed any more. For drop(). */
bool work_is_lost(const struct work *work);

/* Into the DLQ: the record as it is, with the headers that say why. class: poison, refused or
 * exhausted, and static. A record too large for us to write is cut (dlq.h). The caller then calls
 * work_done. */
void work_dead(struct work *work, const char *class, const char *error);
/* The same with other headers than the record's, borrowed. */
void work_dead_as(struct work *work, const struct headers *headers, const char *class,
                  const char *error);
/* False: the record is too large to be put off. */
bool work_can_park(const struct work *work);

struct park {
    int64_t wait_ms; /* from now */
    int attempt;     /* the number of the next one, as header; 0: left as it is */
    const char *error;
    const char *label;             /* of the metric; static */
    const struct headers *headers; /* instead of the record's own; NULL: those */
    struct str value;              /* instead of the record's own, lasting; ptr NULL: that */
};
/* Into the delay topic that suits the wait, to come back to the topic that it was read from. A
 * record too large for that goes to the DLQ as refused: false. The caller then calls work_done. */
bool work_park(struct work *work, const struct park *park);

#endif
