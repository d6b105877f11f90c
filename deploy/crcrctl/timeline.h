/* The life of one delivery, from what the topics hold of it. PURE. */
#ifndef CRCR_CTL_TIMELINE_H
#define CRCR_CTL_TIMELINE_H

#include "summary.h"

/* Every record of one delivery, in any order at first. */
struct timeline {
    struct summary *steps;
    size_t n, cap;
};

void timeline_init(struct timeline *t);
void timeline_clear(struct timeline *t);
/* Takes what the summary has. */
void timeline_add(struct timeline *t, const struct summary *s);
/* By delivery, then by time, then by the way of the data. */
void timeline_sort(struct timeline *t);

/* How far one downstream is: by its jobs once they called back, else by the
 * last step that says something of it. A dispatch whose outcome is repeated changes nothing. */
struct downstream_state {
    struct str repo; /* borrowed from the steps */
    int tier;
    char state[32]; /* one word: routed, waits, dispatched, in_progress, success, parked, … */
    char why[512];  /* a sentence: why it is not further, or what it ended with */
};
#define TIMELINE_MAX_REPOS 2000
/* The downstreams of steps[first … end), tier by tier; *ret is the caller's to free. */
size_t timeline_states(const struct timeline *t, size_t first, size_t end, int64_t now_ms,
                       struct downstream_state **ret);

#endif
