#include "bench.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/mem.h"

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static int64_t us_of(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

int64_t bench_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return us_of(usage.ru_utime) + us_of(usage.ru_stime);
}

long bench_number(const char *text, long min)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < min)
        bench_die("'%s' is no number of at least %ld", text, min);
    return n;
}

/* ---- bodies ---- */

void bodies_read(struct bodies *b, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        bench_die("cannot read %s", path);
    size_t size = (size_t)ftell(file);
    rewind(file);
    *b = (struct bodies){ .text = mem_alloc(1, size + 1) };
    if (fread(b->text, 1, size, file) != size)
        bench_die("cannot read %s", path);
    fclose(file);
    struct str rest = { b->text, size }, line;
    while (str_split(&rest, '\n', &line)) {
        if (!line.len)
            continue;
        b->at = mem_resize(b->at, b->n + 1, sizeof(*b->at));
        b->at[b->n++] = line;
    }
    if (!b->n)
        bench_die("%s holds no line", path);
}

void bodies_clear(struct bodies *b)
{
    free(b->text);
    free(b->at);
    *b = (struct bodies){ 0 };
}

/* ---- samples ---- */

void samples_add(struct samples *s, int64_t us)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 4096;
        s->us = mem_resize(s->us, s->room, sizeof(*s->us));
    }
    s->us[s->n++] = us > INT32_MAX ? INT32_MAX : (int32_t)us;
}

static int by_size(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int64_t samples_quantile(struct samples *s, double share)
{
    if (!s->n)
        return 0;
    qsort(s->us, s->n, sizeof(*s->us), by_size);
    size_t i = (size_t)(share * (double)s->n);
    return s->us[i < s->n ? i : s->n - 1];
}

void samples_clear(struct samples *s)
{
    free(s->us);
    *s = (struct samples){ 0 };
}

/* ---- marks ---- */

void mark_write(char to[MARK_SIZE], const struct mark *mark)
{
    snprintf(to, MARK_SIZE, "bench-%" PRId64 "-%ld-%ld", mark->due_us, mark->number, mark->body);
}

bool mark_read(struct mark *ret, const char *text)
{
    return sscanf(text, "bench-%" SCNd64 "-%ld-%ld", &ret->due_us, &ret->number, &ret->body) == 3;
}
