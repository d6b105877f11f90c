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
 * When offsets go back (a topic made anew) what is in hand from there on belongs to nobody, and
 * comes again. Records that were removed before they were read (retention, kafka-delete-records)
 * are reported: removed(). Not seen: those of a group that has committed nothing in a partition, or
 * nothing for so long that Kafka forgot it (offsets.retention.minutes). Inside revoked()
 * topic_reader_next gives NULL and nothing else of the reader may be called but record_done,
 * record_drop and the counters.
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
    /* Called from topic_reader_next or _free when partitions are being revoked in an orderly
     * way. The owner stops starting work for them, lets what is in flight end (until
     * deadline_mono_ms), and calls record_done or record_drop for each of their records. Whatever
     * is left afterwards is treated as dropped; done() on it later is harmless and commits nothing,
     * and until then its key, value and headers stay where they are.
     * May be NULL. When the partitions are already lost (session timed out) deadline_mono_ms is 0:
     * drop at once. */
    void (*revoked)(void *opaque, const struct topic_position *partitions, size_t n,
                    int64_t deadline_mono_ms);
    /* Called from topic_reader_next before the record that came instead: records were to come from
     * `from` on, and so many are gone, those counted that would have been no records (markers of
     * transactions, what was compacted away). -1: the offsets went back, the log ends below. May
     * be NULL. */
    void (*removed)(void *opaque, const struct topic_position *from, int64_t records);
    void *opaque;
};

enum err topic_reader_new(struct topic_reader **ret, const struct topic_reader_options *options,
                          struct why *why) MUST_CHECK;
/* Leaves the group in order: revoked() is called, what is done is committed. Records that are still
 * in hand afterwards stay valid. NULL is fine. */
void topic_reader_free(struct topic_reader *r);

/* The next record, the caller's until done or drop, and what it borrows stays as long; NULL when
 * none came in timeout_ms. Commits what is
 * done about once a second on the way. */
struct record *topic_reader_next(struct topic_reader *r, int timeout_ms);
/* Done with it, or parked elsewhere: its offset may be committed. Frees the record. */
void record_done(struct record *record);
/* Not done: it will be read again by whoever owns the partition next. Frees the record. */
void record_drop(struct record *record);

/* Whether it is of one of these n partitions, e.g. those that revoked() names. */
bool record_is_of(const struct record *record, const struct topic_position *partitions, size_t n);

/* Of each partition no record is read that is so many or more behind the oldest one in hand: what a
 * crash repeats is at most that. 0: 16 times max_in_hand, as at the beginning. */
void topic_reader_limit_span(struct topic_reader *r, size_t records);
/* Stops (or goes on with) fetching from all partitions, e.g. while Redis is down. Membership stays.
 */
void topic_reader_pause(struct topic_reader *r, bool pause);
/* Whether what is assigned is surely nobody else's for for_ms from now: the coordinator answered so
 * lately that our session lasts longer. What is written within that time, and given up after it, is
 * not behind what the next owner writes. */
bool topic_reader_holds(const struct topic_reader *r, int64_t for_ms);
/* How many partitions are assigned now. */
int topic_reader_assigned(const struct topic_reader *r);
/* now: how many partitions are ours; taken, given, lost (the session timed out: another has had
 * them since): how many were, from the beginning. */
struct topic_reader_state {
    size_t now;
    uint64_t taken, given, lost;
    /* Records between what may be committed and the end of the partitions, from cached high
     * watermarks (no request), without those of which nothing was heard yet; -1: of none was. */
    int64_t lag;
    int64_t oldest_ms; /* timestamp of the oldest record in hand; -1: none is */
};
struct topic_reader_state topic_reader_state(const struct topic_reader *r);
/* The partitions of which nothing is in hand and that are not paused: offset is one past what was
 * read, -1 when neither a record nor the end was heard yet. Topics are borrowed until the next
 * call of topic_reader_next. Returns how many, at most max. */
struct topic_idle {
    struct topic_position at;
    int64_t since_ms; /* monotonic: when that offset changed last, or reading was paused */
};
size_t topic_reader_idle(const struct topic_reader *r, struct topic_idle *ret, size_t max);
/* True once librdkafka reported a fatal error: only a new process reads on. */
bool topic_reader_fatal(struct topic_reader *r, struct why *why);

#endif
