#include "metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(message) abort() /* no memory: as mem.h says */
#include <uthash.h>

#include "mem.h"

/* Upper bounds in seconds; +Inf is the count itself. The last three are for what waits: a dispatch
 * for its limit, at most an hour at once. */
static const double bounds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                 1,     2.5,    5,     10,   30,    60,   300, 1800, 3600 };
enum { N_BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

enum { LABEL_VALUE_MAX = 127 }; /* bytes; a longer value is cut */

/* Label values, each with its length in front: the hash key of a series. */
struct label_key {
    size_t len;
    char bytes[METRICS_MAX_LABELS * (LABEL_VALUE_MAX + 1)];
};

struct series {
    UT_hash_handle hh;
    double value;      /* counter, gauge; sum of a histogram */
    uint64_t *buckets; /* histogram: N_BOUNDS counts (not cumulative) and the total */
    char *key;         /* as in struct label_key */
};

struct family {
    const struct metric_family *about;
    struct series *series; /* uthash, in order of first use */
};

struct metrics {
    pthread_mutex_t lock; /* guards everything below */
    size_t n;
    struct family *families;
};

static size_t n_labels(const struct metric_family *about)
{
    size_t n = 0;
    while (n < METRICS_MAX_LABELS && about->labels[n])
        n++;
    return n;
}

static void make_key(const struct metric_family *about, const struct str *values,
                     struct label_key *key)
{
    key->len = 0;
    for (size_t i = 0; i < n_labels(about); i++) {
        struct str value = values ? values[i] : STR_NONE;
        size_t n = value.len < LABEL_VALUE_MAX ? value.len : LABEL_VALUE_MAX;
        key->bytes[key->len++] = (char)n;
        if (n)
            memcpy(key->bytes + key->len, value.ptr, n);
        key->len += n;
    }
}

static struct series *series_find(struct family *f, const struct label_key *key)
{
    struct series *s;
    HASH_FIND(hh, f->series, key->bytes, key->len, s);
    return s;
}

static struct series *series_add(struct family *f, const struct label_key *key)
{
    struct series *s = mem_alloc(1, sizeof(*s));
    s->key = mem_alloc(key->len, 1);
    memcpy(s->key, key->bytes, key->len);
    if (f->about->type == METRIC_HISTOGRAM)
        s->buckets = mem_alloc(N_BOUNDS + 1, sizeof(*s->buckets));
    HASH_ADD_KEYPTR(hh, f->series, s->key, key->len, s);
    return s;
}

/* The series of these values, made when it is new. */
static struct series *find_or_add(struct family *f, const struct str *values)
{
    struct label_key key;
    make_key(f->about, values, &key);
    struct series *s = series_find(f, &key);
    if (s)
        return s;
    if (HASH_COUNT(f->series) < METRICS_MAX_SERIES)
        return series_add(f, &key);
    struct str other[METRICS_MAX_LABELS];
    for (size_t i = 0; i < METRICS_MAX_LABELS; i++)
        other[i] = STR_LIT("other");
    make_key(f->about, other, &key);
    s = series_find(f, &key);
    return s ? s : series_add(f, &key);
}

struct metrics *metrics_new(const struct metric_family *families, size_t n)
{
    struct metrics *m = mem_alloc(1, sizeof(*m));
    pthread_mutex_init(&m->lock, NULL);
    m->families = mem_alloc(n, sizeof(*m->families));
    m->n = n;
    for (size_t i = 0; i < n; i++) {
        m->families[i].about = &families[i];
        if (n_labels(&families[i]) == 0) /* shown as 0 before the first event */
            find_or_add(&m->families[i], NULL);
    }
    return m;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        struct series *s, *next;
        HASH_ITER(hh, m->families[i].series, s, next)
        {
            HASH_DEL(m->families[i].series, s);
            free(s->buckets);
            free(s->key);
            free(s);
        }
    }
    free(m->families);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void metrics_add(struct metrics *m, size_t family, const struct str *values, double by)
{
    pthread_mutex_lock(&m->lock);
    find_or_add(&m->families[family], values)->value += by;
    pthread_mutex_unlock(&m->lock);
}

void metrics_set(struct metrics *m, size_t family, const struct str *values, double to)
{
    pthread_mutex_lock(&m->lock);
    find_or_add(&m->families[family], values)->value = to;
    pthread_mutex_unlock(&m->lock);
}

void metrics_observe(struct metrics *m, size_t family, const struct str *values, double seconds)
{
    size_t bucket = 0;
    while (bucket < N_BOUNDS && !(seconds <= bounds[bucket]))
        bucket++;
    pthread_mutex_lock(&m->lock);
    struct series *s = find_or_add(&m->families[family], values);
    s->value += seconds;
    if (bucket < N_BOUNDS)
        s->buckets[bucket]++;
    s->buckets[N_BOUNDS]++;
    pthread_mutex_unlock(&m->lock);
}

double metrics_value(struct metrics *m, size_t family, const struct str *values)
{
    struct label_key key;
    make_key(m->families[family].about, values, &key);
    pthread_mutex_lock(&m->lock);
    const struct series *s = series_find(&m->families[family], &key);
    double value = s ? s->value : 0;
    pthread_mutex_unlock(&m->lock);
    return value;
}

static void put_escaped(struct buf *to, struct str s, bool quote_too)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            buf_puts(to, "\\\\");
        else if (s.ptr[i] == '\n')
            buf_puts(to, "\\n");
        else if (s.ptr[i] == '"' && quote_too)
            buf_puts(to, "\\\"");
        else
            buf_putc(to, s.ptr[i]);
    }
}

/* {a="x",b="y",le="0.5"}; le may be NULL. */
static void put_labels(struct buf *to, const struct metric_family *about, const char *key,
                       const char *le)
{
    size_t n = n_labels(about), at = 0;
    if (n == 0 && !le)
        return;
    buf_putc(to, '{');
    for (size_t i = 0; i < n; i++) {
        size_t len = (unsigned char)key[at++];
        buf_printf(to, "%s%s=\"", i ? "," : "", about->labels[i]);
        put_escaped(to, (struct str){ key + at, len }, true);
        buf_putc(to, '"');
        at += len;
    }
    if (le)
        buf_printf(to, "%sle=\"%s\"", n ? "," : "", le);
    buf_putc(to, '}');
}

static void put_number(struct buf *to, double value)
{
    if (isnan(value))
        buf_puts(to, " NaN\n");
    else if (isinf(value))
        buf_puts(to, value > 0 ? " +Inf\n" : " -Inf\n");
    else if (fabs(value) < 1e15 && value == floor(value))
        buf_printf(to, " %.0f\n", value);
    else
        buf_printf(to, " %.15g\n", value);
}

static void put_histogram(struct buf *to, const struct metric_family *about, const struct series *s)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= N_BOUNDS; i++) {
        struct buf CLEANUP(buf_clear) le;
        buf_init(&le, 32);
        if (i < N_BOUNDS)
            buf_printf(&le, "%g", bounds[i]);
        else
            buf_puts(&le, "+Inf");
        below = i < N_BOUNDS ? below + s->buckets[i] : s->buckets[N_BOUNDS];
        buf_printf(to, "%s_bucket", about->name);
        put_labels(to, about, s->key, le.ptr);
        put_number(to, (double)below);
    }
    buf_printf(to, "%s_sum", about->name);
    put_labels(to, about, s->key, NULL);
    put_number(to, s->value);
    buf_printf(to, "%s_count", about->name);
    put_labels(to, about, s->key, NULL);
    put_number(to, (double)s->buckets[N_BOUNDS]);
}

static void put_family(struct buf *to, const struct family *f)
{
    static const char *const types[] = { "counter", "gauge", "histogram" };
    const struct metric_family *about = f->about;
    buf_printf(to, "# HELP %s ", about->name);
    put_escaped(to, str_of(about->help), false);
    buf_printf(to, "\n# TYPE %s %s\n", about->name, types[about->type]);
    for (const struct series *s = f->series; s; s = s->hh.next) {
        if (about->type == METRIC_HISTOGRAM) {
            put_histogram(to, about, s);
            continue;
        }
        buf_puts(to, about->name);
        put_labels(to, about, s->key, NULL);
        put_number(to, s->value);
    }
}

void metrics_render(struct metrics *m, struct buf *to)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++)
        put_family(to, &m->families[i]);
    pthread_mutex_unlock(&m->lock);
}
