/* Reads a small topic from its beginning and keeps following it, without a group: every process
 * sees every record. For `allowlist`, and for tools that look into a topic. */
#ifndef CRCR_IO_TOPIC_FOLLOWER_H
#define CRCR_IO_TOPIC_FOLLOWER_H

#include "topic_reader.h"

struct topic_follower;

/* Where a topic is begun; or a time, wall clock in ms. */
#define FOLLOW_BEGINNING 0
#define FOLLOW_END       (-1)

struct topic_follower_options {
    struct kafka_options kafka;
    const char *const *topics;
    size_t n_topics;
    const int64_t *from; /* each; NULL: all from the beginning */
};

/* Asks the brokers for the topics' partitions, waiting 5 s at most, and where there are times for
 * their offsets, again for 15 s while they have no leader. ERR_RETRY: none answered.
 * ERR_STOP: a topic is missing (named). Partitions added later are not followed. */
enum err topic_follower_new(struct topic_follower **ret,
                            const struct topic_follower_options *options,
                            struct why *why) MUST_CHECK;
/* The same for who tries again and again: *f is NULL the first time. After an error the client
 * stays, for to free it takes as long as a name server that does not answer; only the next call,
 * and topic_follower_free, may take it then. */
enum err topic_follower_try(struct topic_follower **f, const struct topic_follower_options *options,
                            struct why *why) MUST_CHECK;
void topic_follower_free(struct topic_follower *f);
/* The next record, valid until the next call; NULL when none came in timeout_ms. Order holds in a
 * partition. */
const struct record *topic_follower_next(struct topic_follower *f, int timeout_ms);
/* True once everything that was there when the follower started has been handed out. */
bool topic_follower_caught_up(const struct topic_follower *f);
/* Whether something that was there at the start is still to come of that partition. */
bool topic_follower_waits_for(const struct topic_follower *f, const struct topic_position *at);
/* How many partitions it waits for so; *first is one of them, its topic borrowed from f. */
size_t topic_follower_behind(const struct topic_follower *f, struct topic_position *first);
/* True once for each time that every broker was lost: why says which and what to do. Nothing else
 * is to be done but to go on: it comes back by itself. */
bool topic_follower_lost(struct topic_follower *f, struct why *why);
/* True when nothing was read for 90 s though there is more: librdkafka may ask a broker that no
 * longer leads the partition (its pull request 5593), and only a new follower reads on. Asks the
 * brokers, 4 s at most, each 30 s in which nothing comes, and wants the same answer twice. */
bool topic_follower_stalled(struct topic_follower *f, struct why *why);

#endif
