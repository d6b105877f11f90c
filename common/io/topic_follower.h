/* Reads topics from an offset or a time on, without a group: every process sees every record. It
 * goes on with new records (the topic `allowlist`, crcrctl), or with to_ends stops at the ends that
 * the topics had at the start (a rebuild). Records that retention removes before they are read are
 * not reported. One thread. */
#ifndef CRCR_IO_TOPIC_FOLLOWER_H
#define CRCR_IO_TOPIC_FOLLOWER_H

#include "topic_reader.h"

struct topic_follower;

/* Where to begin in a topic. Any other value is a time, wall clock ms: older records do not come.
 */
#define FOLLOW_BEGINNING 0
#define FOLLOW_END       (-1)
#define FOLLOW_LAST(n)   (-2000 - (int64_t)(n)) /* of each partition; RD_KAFKA_OFFSET_TAIL */

struct topic_follower_options {
    struct kafka_options kafka;
    const char *const *topics;
    size_t n_topics;
    const int64_t *from; /* each; NULL: all from the beginning */
    /* Reads up to the ends that the topics had at the start, one topic after the other. Records
     * that come later are not read. If a topic loses records meanwhile (created again, unclean
     * election), it waits for them: when nothing comes the caller must start again. */
    bool to_ends;
    bool once; /* the start asks for offsets only once: the caller tries again by itself */
};

/* Asks the brokers for the topics' partitions, 5 s at most. Where `from` has times it asks for
 * their offsets, too, again for 15 s while a partition has no leader. With to_ends it asks for the
 * ends, and for each thing only once. ERR_RETRY: none answered. ERR_STOP: a topic is missing
 * (named). Partitions added later are not followed.
 *
 * *f is NULL the first time. After an error it is the caller's, too, but only for the next try or
 * topic_follower_free. Keep it while you try again: freeing it can take as long as a name server
 * that does not answer. */
enum err topic_follower_start(struct topic_follower **f,
                              const struct topic_follower_options *options,
                              struct why *why) MUST_CHECK;
void topic_follower_free(struct topic_follower *f);
/* The next record, valid until the next call. NULL when none came in timeout_ms, or with to_ends
 * all was read. Records of one partition come in order. */
const struct record *topic_follower_next(struct topic_follower *f, int timeout_ms);
/* True once everything that was there when the follower started has been handed out. */
bool topic_follower_caught_up(const struct topic_follower *f);
/* Counts the partitions with records still to come that were there at the start, once none of these
 * has come for silent_ms. *first is one of them; its topic is borrowed from f. */
size_t topic_follower_behind(const struct topic_follower *f, int64_t silent_ms,
                             struct topic_position *first);
/* The progress with to_ends. */
struct topic_follower_seen {
    size_t topic; /* the index of the one that is being read; n_topics when all were */
    /* Offsets from where it began to the ends, and how many of them are passed. Compaction leaves
     * gaps: there may be fewer records. */
    int64_t total, done;
};
struct topic_follower_seen topic_follower_seen(const struct topic_follower *f);
/* True once each time that all brokers became unavailable: why says which and what to do. Go on
 * reading: it connects again by itself. */
bool topic_follower_lost(struct topic_follower *f, struct why *why);
/* True when nothing was read for 90 s though there is more: only a new follower reads on.
 * (librdkafka may ask a broker that no longer leads the partition: its pull request 5593.) Each 30
 * s without a record it asks the brokers, 4 s at most; it needs the same answer twice. */
bool topic_follower_stalled(struct topic_follower *f, struct why *why);

#endif
