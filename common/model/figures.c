#include "figures.h"

#include <inttypes.h>
#include <math.h>

#define GAMMA (1.05 / 0.95)
#define LEAST 100.0 /* ms: the upper end of bucket 0 */

static const char *const count_names[FIGURE_COUNTS] = {
    [FIGURE_COMPLETED] = "done",      [FIGURE_SUCCESSFUL] = "ok", [FIGURE_CANCELLED] = "cancelled",
    [FIGURE_TIMED_OUT] = "timed_out", [FIGURE_RUNS] = "runs",
};
/* The sum has the name, a bucket its first letter and the number. */
static const char *const time_names[FIGURE_TIMES] = {
    [FIGURE_QUEUE] = "queue",
    [FIGURE_EXECUTION] = "took",
    [FIGURE_E2E] = "e2e",
};

static size_t bucket_of(int64_t ms)
{
    if ((double)ms <= LEAST)
        return 0;
    double i = ceil(log((double)ms / LEAST) / log(GAMMA));
    return i < FIGURE_BUCKETS ? (size_t)i : FIGURE_BUCKETS - 1;
}

/* As far, in proportion, from its lower end as from its upper one. */
static int64_t middle_of(size_t bucket)
{
    return bucket == 0 ? (int64_t)LEAST
                       : llround(LEAST * 2 * pow(GAMMA, (double)bucket) / (GAMMA + 1));
}

void figures_add_time(struct figures *f, enum figure_time time, int64_t ms)
{
    if (ms < 0)
        return;
    f->sum_ms[time] += ms;
    f->bucket[time][bucket_of(ms)]++;
}

void figures_add(struct figures *to, const struct figures *other)
{
    for (size_t i = 0; i < FIGURE_COUNTS; i++)
        to->count[i] += other->count[i];
    for (size_t t = 0; t < FIGURE_TIMES; t++) {
        to->sum_ms[t] += other->sum_ms[t];
        for (size_t i = 0; i < FIGURE_BUCKETS; i++)
            to->bucket[t][i] += other->bucket[t][i];
    }
}

static int64_t number_of(const struct figures *f, enum figure_time time)
{
    int64_t n = 0;
    for (size_t i = 0; i < FIGURE_BUCKETS; i++)
        n += f->bucket[time][i];
    return n;
}

int64_t figures_mean_ms(const struct figures *f, enum figure_time time)
{
    int64_t n = number_of(f, time);
    return n > 0 ? f->sum_ms[time] / n : -1;
}

int64_t figures_quantile_ms(const struct figures *f, enum figure_time time, double part)
{
    int64_t n = number_of(f, time), seen = 0;
    if (n <= 0)
        return -1;
    int64_t rank = (int64_t)ceil(part * (double)n); /* the first is 1 */
    for (size_t i = 0; i < FIGURE_BUCKETS; i++) {
        seen += f->bucket[time][i];
        if (seen >= rank)
            return middle_of(i);
    }
    return middle_of(FIGURE_BUCKETS - 1);
}

void figures_lines(const struct figures *f, const char *before, struct buf *to)
{
    for (size_t i = 0; i < FIGURE_COUNTS; i++)
        if (f->count[i] != 0)
            buf_printf(to, "%s%s %" PRId64 "\n", before, count_names[i], f->count[i]);
    for (size_t t = 0; t < FIGURE_TIMES; t++) {
        if (f->sum_ms[t] != 0)
            buf_printf(to, "%s%s %" PRId64 "\n", before, time_names[t], f->sum_ms[t]);
        for (size_t i = 0; i < FIGURE_BUCKETS; i++)
            if (f->bucket[t][i] != 0)
                buf_printf(to, "%s%c%zu %" PRIu32 "\n", before, time_names[t][0], i,
                           f->bucket[t][i]);
    }
}

void figures_put(struct figures *f, struct str name, int64_t n)
{
    uint64_t bucket;
    for (size_t i = 0; i < FIGURE_COUNTS; i++)
        if (str_is(name, count_names[i])) {
            f->count[i] += n;
            return;
        }
    for (size_t t = 0; t < FIGURE_TIMES; t++) {
        if (str_is(name, time_names[t]))
            f->sum_ms[t] += n;
        else if (name.len > 1 && name.ptr[0] == time_names[t][0] &&
                 str_to_u64(str_from(name, 1), &bucket) && bucket < FIGURE_BUCKETS)
            f->bucket[t][bucket] += (uint32_t)n;
    }
}
