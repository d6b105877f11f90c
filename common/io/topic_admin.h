/* What tools and pages ask of the brokers: make topics, compare them with what they should be, say
 * how far a group is, and read single records. Blocking; for one thread. */
#ifndef CRCR_IO_TOPIC_ADMIN_H
#define CRCR_IO_TOPIC_ADMIN_H

#include "kafka.h"
#include "topic_spec.h"

struct topic_admin;

/* Does not connect yet. */
enum err topic_admin_new(struct topic_admin **ret, const struct kafka_options *options,
                         int timeout_ms, struct why *why) MUST_CHECK;
/* NULL is fine. While an answer to topic_admin_lag is outstanding, its memory stays. */
void topic_admin_free(struct topic_admin *a);

enum topic_state {
    TOPIC_STATE_OK,
    TOPIC_STATE_MISSING,
    TOPIC_STATE_DIFFERS,
    TOPIC_STATE_CREATED,
    TOPIC_STATE_WIDENED,
};
struct topic_report {
    enum topic_state state;
    char detail[400]; /* "partitions is 4, not 12; retention.ms raised from …" */
};
/* Compares prefix + name of each spec with the cluster; reports has one entry a spec.
 * min.insync.replicas is compared only where the spec sets it. ERR_RETRY: no broker answers.
 *
 * With make it creates what is missing, then waits until the brokers know every topic (ERR_RETRY:
 * one does not in time). replication: copies of each partition, 0: 3, or as many as there are
 * brokers; min.insync.replicas becomes 2 when there are three or more, else 1, unless the spec sets
 * it. ERR_REFUSE when the broker will not.
 *
 * Of topics that differ it raises retention.ms, retention.bytes and max.message.bytes to what the
 * spec says where that is more: nothing that is kept is lost by it. The report is WIDENED when
 * nothing else differs. Kafka's AlterConfigs replaces all of a topic's own settings at once, so
 * what another sets in that very moment is lost (librdkafka before 2.2 has no incremental form). */
enum err topic_admin_compare(struct topic_admin *a, const struct topic_specs *specs,
                             const char *prefix, bool make, int replication,
                             struct topic_report *reports, struct why *why) MUST_CHECK;

struct partition_lag {
    char topic[96];
    int32_t partition;
    int64_t committed; /* -1: the group never committed there */
    int64_t first;     /* the oldest record that is there */
    int64_t end;
    int64_t lag; /* records that the group has still to read, of those that are there */
};
/* One entry for each group and partition, sorted: *n of the first group, *n of the second, …; *ret
 * is the caller's to free. ERR_STOP names a topic that is missing. */
enum err topic_admin_lag(struct topic_admin *a, const char *const *groups, size_t n_groups,
                         const char *const *topics, size_t n_topics, struct partition_lag **ret,
                         size_t *n, struct why *why) MUST_CHECK;

/* Whether partitions have more to read. at[i].offset: one past what was read; -1: nothing was, and
 * the end is not known. *ret: the index of the first that has more, -1 when none has. ERR_RETRY:
 * not known, e.g. while a leader is unavailable. */
enum err topic_admin_behind(struct topic_admin *a, const struct topic_position *at, size_t n,
                            ptrdiff_t *ret, struct why *why) MUST_CHECK;

/* A record to read: the one at that offset, or the next one if that was removed. */
struct topic_want {
    struct topic_position at; /* its topic is borrowed for the call */
    void *user;               /* the record's */
};
/* The record is valid during the call. */
typedef void topic_found_fn(const struct record *record);
/* Calls found at most once for each of n, in any order; not at all where no record follows.
 * ERR_RETRY: timeout_ms passed before all were read. */
enum err topic_admin_read(struct topic_admin *a, const struct topic_want *wants, size_t n,
                          int timeout_ms, topic_found_fn *found, struct why *why) MUST_CHECK;

#endif
