/* Metrics in the Prometheus text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Families are declared in one
 * static table a program; a value is found by family and label values. All functions may be called
 * from any thread. Cardinality is bounded: past METRICS_MAX_SERIES series of a family, values go to
 * one series whose labels all say "other". */
#ifndef CRCR_BASE_METRICS_H
#define CRCR_BASE_METRICS_H

#include "buf.h"

#define METRICS_MAX_SERIES 2000
#define METRICS_MAX_LABELS 4

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; /* crcr_…_total, crcr_…_seconds, crcr_…_bytes */
    enum metric_type type;
    const char *help;
    const char *labels[METRICS_MAX_LABELS]; /* NULL-terminated when fewer */
};

struct metrics;

/* families is a static table of n entries, kept by pointer. */
struct metrics *metrics_new(const struct metric_family *families, size_t n);
void metrics_free(struct metrics *m);
/* family is the index in the table; values has one entry a label (NULL when the family has none).
 */
void metrics_add(struct metrics *m, size_t family, const struct str *values, double by);
void metrics_set(struct metrics *m, size_t family, const struct str *values, double to);
/* Histograms: fixed buckets from 1 ms to an hour (METRICS in seconds). */
void metrics_observe(struct metrics *m, size_t family, const struct str *values, double seconds);
/* The current value of a counter or gauge, 0 when it was never touched. For tests and health. */
double metrics_value(struct metrics *m, size_t family, const struct str *values);
void metrics_render(struct metrics *m, struct buf *to);

#define METRIC_LABELS(...) ((const struct str[]){ __VA_ARGS__ })

#endif
