/* Reads topics from some place on, without a group: every process sees every record. It follows
 * them (`allowlist`, and tools that look into a topic), or with to_ends ends where they ended (to
 * rebuild what was made of them). What retention removes ahead of it is not reported: it never
 * promised to have read all, and begun a moment later it would not have seen it. One thread. */
#ifndef CRCR_IO_TOPIC_FOLLOWER_H
#define CRCR_IO_TOPIC_FOLLOWER_H

#include "topic_reader.h"

struct topic_follower;

/* Where a topic is begun; or a time, wall clock in ms, and what is older does not come. */
#define FOLLOW_BEGINNING 0
#define FOLLOW_END       (-1)

struct topic_follower_options {
    struct kafka_options kafka;
    const char *const *topics;
    size_t n_topics;
    const int64_t *from; /* each; NULL: all from the beginning */
    /* Reads to the ends that the topics had when it began: first all of one topic, then all of the
     * next. What comes in meanwhile is not read. What a topic lost meanwhile (made anew, an unclean
     * election) is waited for: who reads must begin anew when nothing comes. */
    bool to_ends;
    bool once; /* the start asks for offsets once: for who tries again by itself */
};

/* Asks the brokers for the topics' partitions, waiting 5 s at most, and where there are times for
 * their offsets, again for 15 s while they have no leader. With to_ends it asks for the ends, too,
 * and nothing again. ERR_RETRY: none answered. ERR_STOP: a topic is missing (named). Partitions
 * added later are not followed.
 *
 * *f is NULL the first time, and the caller's also after an error: then it is for the next try, or
 * topic_follower_free, alone. Who tries again and again keeps it, for to free it takes as long as a
 * name server that does not answer. */
enum err topic_follower_start(struct topic_follower **f,
                              const struct topic_follower_options *options,
                              struct why *why) MUST_CHECK;
void topic_follower_free(struct topic_follower *f);
/* The next record, valid until the next call; NULL when none came in timeout_ms, or with to_ends
 * all was read. Order holds in a partition. */
const struct record *topic_follower_next(struct topic_follower *f, int timeout_ms);
/* True once everything that was there when the follower started has been handed out. */
bool topic_follower_caught_up(const struct topic_follower *f);
/* Of how many partitions something is still to come that was there at the start, when nothing such
 * has come for silent_ms; *first is one of them, its topic borrowed from f. */
size_t topic_follower_behind(const struct topic_follower *f, int64_t silent_ms,
                             struct topic_position *first);
/* With to_ends. */
struct topic_follower_seen {
    size_t topic; /* the index of the one that is being read; n_topics when all were */
    /* Offsets between the places where it began and the ends, and how many of them are passed.
     * Compaction leaves gaps: these are no counts of records. */
    int64_t total, done;
};
struct topic_follower_seen topic_follower_seen(const struct topic_follower *f);
/* True once for each time that every broker was lost: why says which and what to do. Nothing else
 * is to be done but to go on: it comes back by itself. */
bool topic_follower_lost(struct topic_follower *f, struct why *why);
/* True when nothing was read for 90 s though there is more: librdkafka may ask a broker that no
 * longer leads the partition (its pull request 5593), and only a new follower reads on. Asks the
 * brokers, 4 s at most, each 30 s in which nothing comes, and wants the same answer twice. */
bool topic_follower_stalled(struct topic_follower *f, struct why *why);

#endif
