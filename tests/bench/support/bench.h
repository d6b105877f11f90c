/* What the drivers of tests/bench share. They are tools for one machine: they end with a message
 * when something is wrong, and print one line of JSON when they are done. Times are microseconds of
 * the monotonic clock, which all processes of the machine share. */
#ifndef CRCR_BENCH_H
#define CRCR_BENCH_H

#include "common/base/str.h"

/* Says why on standard error and exits with 1. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* CPU time that this process has used, all threads, user and system. */
int64_t bench_cpu_us(void);
/* A number of the command line, at least min. */
long bench_number(const char *text, long min);

/* The lines of a file, one body each. */
struct bodies {
    char *text;
    struct str *at;
    size_t n;
};
void bodies_read(struct bodies *b, const char *path);
void bodies_clear(struct bodies *b);

/* Latencies. */
struct samples {
    int32_t *us;
    size_t n, room;
};
void samples_add(struct samples *s, int64_t us);
/* The sample below which that share (0 to 1) lies; sorts. 0 when there is none. */
int64_t samples_quantile(struct samples *s, double share);
void samples_clear(struct samples *s);

/* One request of a bench is known by its delivery: "bench-<due µs>-<number>-<body>". It is how the
 * sink knows, without a word to the generator, when a webhook was due. */
struct mark {
    int64_t due_us;
    long number;
    long body;
};
#define MARK_SIZE 64
void mark_write(char to[MARK_SIZE], const struct mark *mark);
/* From text that begins with one. */
bool mark_read(struct mark *ret, const char *text);

#endif
