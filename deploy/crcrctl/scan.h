/* Reads topics from a moment on, without a group: what looks into them shares this loop. */
#ifndef CRCR_CTL_SCAN_H
#define CRCR_CTL_SCAN_H

#include "../../common/io/topic_follower.h"
#include "ctl.h"

/* record is valid during the call. False ends the scan. */
typedef bool scan_fn(void *opaque, const struct record *record);

struct scan {
    unsigned topics; /* SCAN(TOPIC_…) | … */
    int64_t from_ms; /* wall clock; or FOLLOW_BEGINNING, 0; or FOLLOW_END */
    bool follow;     /* goes on with what comes, until a signal */
    bool quiet;  /* shows no progress; else who prints in the middle calls progress_end before */
    size_t read; /* records so far */
};
#define SCAN(topic) (1u << (topic))

/* Hands each record that is there to found, in order within a partition; ends when all that was
 * there has been read (follow: never), when found says so, or on a signal. ERR_RETRY: Kafka does
 * not answer, also in the middle; ERR_STOP: a topic is missing (named). */
enum err scan_run(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why) MUST_CHECK;
/* The same for who needs all of it: ERR_REFUSE when a signal ended it before (not with follow). */
enum err scan_all(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why) MUST_CHECK;

#endif
