/* Reads topics in a consumer group, at least once, with records in hand out of order.
 *
 *   next ──▶ record in hand ──▶ record_done ──▶ lowest that is not done ──▶ committed offset
 *                     └───────▶ record_drop (the partition was revoked: another reads it again)
 *
 * An offset is committed only when every earlier record of its partition is done. At most
 * max_in_hand records or max_in_hand_bytes are out per partition, then that partition is paused
 * (queued.max.messages.kbytes bounds what librdkafka holds besides; records are copies).
 * Cooperative-sticky, dynamic membership, session.timeout 6 s, heartbeat 1.5 s, auto commit off,
 * auto.offset.reset earliest.
 *
 * When offsets go back (a topic was deleted and created again), the records in hand from there on
 * commit nothing, and are read again. Records that Kafka removed before they were read (retention,
 * kafka-delete-records) are reported: removed(). Not seen: those of a group that has never
 * committed in a partition, or so long ago that Kafka forgot it (offsets.retention.minutes).
 *
 * Inside revoked() topic_reader_next gives NULL. Call nothing else of the reader there but
 * record_done, record_drop and the counters.
 *
 * All functions are for the one thread that owns the reader. */
#ifndef CRCR_IO_TOPIC_READER_H
#define CRCR_IO_TOPIC_READER_H

#include "../base/wake.h"
#include "kafka.h"

struct topic_reader;

struct topic_reader_options {
    struct kafka_options kafka;
    const char *group;
    const char *const *topics;
    size_t n_topics;
    int max_in_hand; /* per partition; 0: 1,000 */
    /* Keys, values and headers; per partition; 0: 16 MiB. One larger record is still handed out. */
    size_t max_in_hand_bytes;
    struct wake *wake; /* woken when a record may be waiting; borrowed, may be NULL */
    /* Called from topic_reader_next or _free when partitions are revoked in order. The owner starts
     * no more work for them, lets what is in flight end (until deadline_mono_ms), and calls
     * record_done or record_drop for each of their records. A record that it keeps counts as
     * dropped: record_done on it later is harmless and commits nothing, and until then its key,
     * value and headers stay valid. May be NULL. deadline_mono_ms is 0 when the partitions are lost
     * already (session timed out): drop at once. */
    void (*revoked)(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms);
    /* Called from topic_reader_next before the next record of the partition: of the offsets from
     * `from` on, this many were removed unread. Markers of transactions and what was compacted away
     * count, too. -1: the offsets went back, the log ends below `from`. May be NULL. */
    void (*removed)(void *opaque, const struct topic_position *from, int64_t records);
    void *opaque;
};

enum err topic_reader_new(struct topic_reader **ret, const struct topic_reader_options *options,
                          struct why *why) MUST_CHECK;
/* Leaves the group in order: revoked() is called, what is done is committed. Records that are still
 * in hand afterwards stay valid. NULL is fine. */
void topic_reader_free(struct topic_reader *r);

/* The next record; NULL when none came in timeout_ms. It and what it borrows stay valid until
 * record_done or record_drop. Commits what is done about once a second on the way. */
struct record *topic_reader_next(struct topic_reader *r, int timeout_ms);
/* Done with it, or parked elsewhere: its offset may be committed. Frees the record. */
void record_done(struct record *record);
/* Not done: it will be read again by whoever owns the partition next. Frees the record. */
void record_drop(struct record *record);

/* Whether the record is of one of these n partitions, e.g. those that revoked() names. */
bool record_is_of(const struct record *record, const struct topic_position *partitions, size_t n);

/* From now on a partition is read at most this many records past the oldest one in hand: a crash
 * repeats no more. 0: 16 times max_in_hand, the default. */
void topic_reader_limit_span(struct topic_reader *r, size_t records);
/* Stops (or goes on with) fetching from all partitions, e.g. while Redis is down. Membership stays.
 */
void topic_reader_pause(struct topic_reader *r, bool pause);
/* Whether the assigned partitions stay ours for for_ms from now: the coordinator answered so lately
 * that our session lasts longer. What is written within that time comes before anything that the
 * next owner writes. */
bool topic_reader_holds(const struct topic_reader *r, int64_t for_ms);
/* How many partitions are assigned now. */
int topic_reader_assigned(const struct topic_reader *r);
/* now: partitions that are assigned. Since the start: taken, given (revoked in order), lost (the
 * session timed out, and another owns them since). */
struct topic_reader_state {
    size_t now;
    uint64_t taken, given, lost;
    /* Records between the offset that may be committed and the end of the partition, of all
     * partitions together, from cached high watermarks (no request). A partition without one does
     * not count; -1: none has one. */
    int64_t lag;
    int64_t oldest_ms; /* timestamp of the oldest record in hand; -1: none is */
};
struct topic_reader_state topic_reader_state(const struct topic_reader *r);
/* The partitions that have nothing in hand and are not paused. offset: one past what was read; -1:
 * neither a record nor the end came yet. Topics are borrowed until the next call of
 * topic_reader_next. Returns how many, at most max. */
struct topic_idle {
    struct topic_position at;
    int64_t since_ms; /* monotonic: the last change of the offset, pause or resume */
};
size_t topic_reader_idle(const struct topic_reader *r, struct topic_idle *ret, size_t max);
/* True once librdkafka reported a fatal error: only a new process can read on. */
bool topic_reader_fatal(struct topic_reader *r, struct why *why);

#endif
