/* Reads topics from some time on to the ends that they had when it began, without a group: first
 * all of one topic, then all of the next. What comes in meanwhile is not read. What a topic lost
 * meanwhile (made anew, an unclean election) is waited for: who reads must begin anew when nothing
 * comes. For rebuilding what was made of the topics; one thread. */
#ifndef CRCR_IO_TOPIC_SPAN_H
#define CRCR_IO_TOPIC_SPAN_H

#include "topic_reader.h"

struct topic_span;

struct topic_span_part {
    const char *topic; /* borrowed for the call */
    int64_t from_ms;   /* wall clock; 0: from the beginning. Older records may come too */
};

/* Asks the brokers for the partitions and their ends, waiting 5 s at most for each answer.
 * ERR_RETRY: none came. ERR_STOP: a topic is missing (named). */
enum err topic_span_new(struct topic_span **ret, const struct kafka_options *kafka,
                        const struct topic_span_part *parts, size_t n, struct why *why) MUST_CHECK;
void topic_span_free(struct topic_span *s);
/* The next record, valid until the next call; NULL when none came in timeout_ms, or all was read.
 * Order holds in a partition. */
const struct record *topic_span_next(struct topic_span *s, int timeout_ms);
/* The part that is being read; n when all was. */
size_t topic_span_part(const struct topic_span *s);
/* Offsets between the beginnings and the ends of all parts, and how many of them are passed.
 * Compaction leaves gaps: these are no counts of records. */
int64_t topic_span_total(const struct topic_span *s);
int64_t topic_span_done(const struct topic_span *s);

#endif
