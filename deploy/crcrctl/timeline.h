/* The life of one delivery, from its records in the topics. PURE. */
#ifndef CRCR_CTL_TIMELINE_H
#define CRCR_CTL_TIMELINE_H

#include "summary.h"

/* The records of deliveries, in any order until timeline_sort. */
struct timeline {
    struct summary *steps;
    size_t n, cap;
};

void timeline_init(struct timeline *t);
void timeline_clear(struct timeline *t);
/* Takes over the summary's memory. */
void timeline_add(struct timeline *t, const struct summary *s);
/* Sorts by delivery, then by time, then by the direction of the data flow. */
void timeline_sort(struct timeline *t);

/* How far one downstream is: by its jobs once they called back, else by its last step that says
 * something. A repeated outcome of a dispatch changes nothing. */
struct downstream_state {
    struct str repo; /* borrowed from the steps */
    int tier;
    char state[32]; /* one word: routed, waits, dispatched, in_progress, success, parked, … */
    char why[512];  /* a sentence: why it goes no further, or how it ended */
};
#define TIMELINE_MAX_REPOS 2000
/* The downstreams of steps[first … end), tier by tier; *ret is the caller's to free. */
size_t timeline_states(const struct timeline *t, size_t first, size_t end, int64_t now_ms,
                       struct downstream_state **ret);

#endif
