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
void timeline_add(struct timeline *t, const struct summary *s);
/* By delivery, then by time, then by the way of the data. */
void timeline_sort(struct timeline *t);

/* Where one downstream stands: by its jobs once they called back (timeline_jobs.h), else by the
 * last step that says something of it. A dispatch that is told again changes nothing. */
struct standing {
    const char *repo; /* borrowed from the steps */
    int tier;
    char state[32]; /* one word: routed, waits, dispatched, in_progress, success, parked, … */
    char why[512];  /* a sentence: why it is not further, or what it ended with */
};
#define TIMELINE_MAX_REPOS 2000
/* The downstreams of steps[first … end), tier by tier; *ret is the caller's to free. */
size_t timeline_standings(const struct timeline *t, size_t first, size_t end, int64_t now_ms,
                          struct standing **ret);

/* What the view in Redis has of one delivery: where it stands there, and what was made at GitHub.
 */
struct timeline_checks {
    struct timeline_check {
        char *name;
        int64_t id; /* at GitHub */
        bool completed;
    } * at;
    size_t n;
    struct timeline_comment { /* on-call comments */
        char *repo;
        int64_t pr, id; /* id: at GitHub */
    } * comments;
    size_t n_comments;
    struct timeline_state { /* dispatches, each followed by its jobs */
        char *repo, *what;  /* "dispatch" or "<workflow> / <job>" */
        char *state;
    } * states;
    size_t n_states;
    char trouble[320]; /* why it is not known; "": it is */
};
void timeline_checks_clear(struct timeline_checks *checks);

/* For people and as JSON: the steps [first … end) of one delivery. */
void timeline_print(struct buf *to, const struct timeline *t, size_t first, size_t end,
                    int64_t now_ms, const struct timeline_checks *checks, bool color);
void timeline_json(struct buf *to, const struct timeline *t, size_t first, size_t end,
                   int64_t now_ms, const struct timeline_checks *checks);

#endif
