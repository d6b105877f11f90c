/* What some jobs of a downstream come to: counts, and their times as sums and in buckets. Figures
 * can be added and taken off again, in any order. PURE.
 *
 * A bucket holds what is at most 5 % from its middle: bucket 0 what took up to 0.1 s, bucket i up
 * to 0.1 s * g^i with g = 1.05 / 0.95 (DDSketch, arXiv 1908.10693). The last one, all beyond 209
 * days. */
#ifndef CRCR_MODEL_FIGURES_H
#define CRCR_MODEL_FIGURES_H

#include "../base/buf.h"

enum figure_count {
    FIGURE_COMPLETED,  /* jobs that ended, also by timing out */
    FIGURE_SUCCESSFUL, /* of these; all others count against the pass rate */
    FIGURE_CANCELLED,  /* of these, unless successful; so, too, timed out */
    FIGURE_TIMED_OUT,
    FIGURE_RUNS, /* whose jobs have all ended */
    FIGURE_COUNTS
};
enum figure_time {
    FIGURE_QUEUE,     /* of a job: dispatch → in progress */
    FIGURE_EXECUTION, /* of a job: in progress → completed */
    FIGURE_E2E,       /* of a run: max(queue) + (max(completed_at) - min(started_at)) */
    FIGURE_TIMES
};
#define FIGURE_BUCKETS 192

struct figures {
    int64_t count[FIGURE_COUNTS];
    int64_t sum_ms[FIGURE_TIMES];
    uint32_t bucket[FIGURE_TIMES][FIGURE_BUCKETS];
};

/* One more time; below 0 it is not known, and is left out. */
void figures_add_time(struct figures *f, enum figure_time time, int64_t ms);
/* Adds all of other. */
void figures_add(struct figures *to, const struct figures *other);

/* The arithmetic mean, exact; -1 when there is none. */
int64_t figures_mean_ms(const struct figures *f, enum figure_time time);
/* The value that a part of them (0.95) does not exceed, within 5 %; -1 when there is none. */
int64_t figures_quantile_ms(const struct figures *f, enum figure_time time, double part);

/* As lines "<name> <number>", for a store: each that is not 0, in a fixed order, behind before. */
void figures_lines(const struct figures *f, const char *before, struct buf *to);
/* Adds n to the one of that name; a name that is not known is passed over. */
void figures_put(struct figures *f, struct str name, int64_t n);

#endif
