/* The loop of all verbs that read topics: from a moment on, without a group. */
#ifndef CRCR_CTL_SCAN_H
#define CRCR_CTL_SCAN_H

#include "../../common/io/topic_follower.h"
#include "ctl.h"

/* record is valid during the call. False ends the scan. */
typedef bool scan_fn(void *opaque, const struct record *record);

struct scan {
    unsigned topics; /* SCAN(TOPIC_…) | … */
    int64_t from_ms; /* wall clock; or FOLLOW_BEGINNING, 0; or FOLLOW_END */
    bool follow;     /* goes on with new records, until a signal */
    bool quiet;      /* shows no progress. Otherwise call progress_end before you print */
    size_t read;     /* records so far */
    /* With follow: called once, when all that was there at the start is read. NULL: nothing is. */
    void (*all_read)(void *opaque);
};
#define SCAN(topic) (1u << (topic))

/* Calls found with each record, in order within a partition. Ends when all records that were there
 * at the start are read (follow: never), when found returns false, or on a signal. ERR_RETRY: Kafka
 * does not answer, also in the middle; ERR_STOP: a topic is missing (named). */
enum err scan_run(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why) MUST_CHECK;
/* The same for who needs every record: ERR_REFUSE when a signal ended it (not with follow). */
enum err scan_all(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why) MUST_CHECK;

#endif
