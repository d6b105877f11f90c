#include "dispatch_day.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../../common/base/mem.h"

#define HOURS        24
#define HOUR_MS      (DISPATCH_DAY_MS / HOURS)
#define BUCKETS      128
#define PER_DOUBLING 4 /* bucket i ends at 2^(i/4) ms; the last one after 41 days */
#define REPOS_MAX    10000
#define FORGOTTEN_MS (15 * 60 * 1000LL)

struct downstream {
    UT_hash_handle hh;
    char repo[REPO_MAX + 1];
    int64_t answered_ms, put_off_ms;
};

struct dispatch_day {
    struct hour {
        int64_t hour; /* since 1970 */
        int64_t dispatched, failed;
        uint32_t latency[BUCKETS];
    } hours[HOURS];
    struct downstream *downstreams;
};

struct dispatch_day *dispatch_day_new(void)
{
    return mem_alloc(1, sizeof(struct dispatch_day));
}

void dispatch_day_free(struct dispatch_day *d)
{
    struct downstream *one, *next;
    if (!d)
        return;
    HASH_ITER(hh, d->downstreams, one, next)
    {
        HASH_DEL(d->downstreams, one);
        free(one);
    }
    free(d);
}

/* ---- calls and their times ------------------------------------------------------------------- */

static size_t bucket_of(int64_t ms)
{
    size_t i = ms > 1 ? (size_t)ceil(PER_DOUBLING * log2((double)ms)) : 0;
    return i < BUCKETS ? i : BUCKETS - 1;
}

static void count(struct dispatch_day *d, const struct outcome *o)
{
    int64_t hour = o->at_ms / HOUR_MS;
    struct hour *h = &d->hours[hour % HOURS];
    if (h->hour > hour) /* it was 24 hours ago */
        return;
    if (h->hour < hour)
        *h = (struct hour){ .hour = hour };
    h->failed += o->outcome == OUTCOME_FAILED;
    if (o->outcome != OUTCOME_DISPATCHED)
        return;
    h->dispatched++;
    if (o->received_ms > 0 && !*o->source && !*o->again)
        h->latency[bucket_of(o->at_ms - o->received_ms)]++;
}

struct dispatch_sums dispatch_day_sums(const struct dispatch_day *d, int64_t now_ms)
{
    struct dispatch_sums sums = { .p50_ms = -1, .p99_ms = -1 };
    uint64_t latency[BUCKETS] = { 0 }, n = 0, seen = 0;
    for (const struct hour *h = d->hours; h < d->hours + HOURS; h++) {
        if (h->hour <= now_ms / HOUR_MS - HOURS)
            continue;
        sums.dispatched += h->dispatched;
        sums.failed += h->failed;
        for (size_t i = 0; i < BUCKETS; i++)
            latency[i] += h->latency[i];
    }
    for (size_t i = 0; i < BUCKETS; i++)
        n += latency[i];
    for (size_t i = 0; i < BUCKETS && sums.p99_ms < 0; i++) {
        int64_t ends_ms = (int64_t)llround(exp2((double)i / PER_DOUBLING));
        seen += latency[i];
        if (seen && sums.p50_ms < 0 && seen * 2 >= n)
            sums.p50_ms = ends_ms;
        if (seen && seen * 100 >= n * 99)
            sums.p99_ms = ends_ms;
    }
    return sums;
}

/* ---- whose breaker is open ------------------------------------------------------------------- */

static struct downstream *downstream_of(struct dispatch_day *d, const char *name)
{
    char repo[REPO_MAX + 1];
    struct downstream *one;
    str_lower(repo, sizeof(repo), str_of(name));
    HASH_FIND_STR(d->downstreams, repo, one);
    if (one || HASH_COUNT(d->downstreams) >= REPOS_MAX)
        return one;
    one = mem_alloc(1, sizeof(*one));
    str_copy(one->repo, sizeof(one->repo), str_of(repo));
    HASH_ADD_STR(d->downstreams, repo, one);
    return one;
}

/* As breaker_answered: whatever is an answer ends it, a refusal too. */
static void note(struct dispatch_day *d, const struct outcome *o)
{
    bool answered = (o->outcome == OUTCOME_DISPATCHED || o->outcome == OUTCOME_FAILED) &&
                    o->http_status >= 200 && o->http_status < 500;
    bool put_off = o->outcome == OUTCOME_WAITING && strcmp(o->error, BREAKER_REASON) == 0;
    struct downstream *one = answered || put_off ? downstream_of(d, o->repo) : NULL;
    if (one && answered && o->at_ms > one->answered_ms)
        one->answered_ms = o->at_ms;
    if (one && put_off && o->at_ms > one->put_off_ms)
        one->put_off_ms = o->at_ms;
}

void dispatch_day_add(struct dispatch_day *d, const struct outcome *o, int64_t now_ms)
{
    if (o->at_ms <= now_ms - DISPATCH_DAY_MS || o->at_ms > now_ms + HOUR_MS)
        return;
    if (strcmp(o->kind, task_kind_name(TASK_DISPATCH)) == 0)
        count(d, o);
    note(d, o);
}

size_t dispatch_day_broken(const struct dispatch_day *d, int64_t now_ms,
                           struct broken_downstream *ret, size_t max)
{
    struct downstream *one, *next;
    size_t n = 0;
    HASH_ITER(hh, d->downstreams, one, next)
    {
        if (one->put_off_ms <= one->answered_ms || one->put_off_ms <= now_ms - FORGOTTEN_MS)
            continue;
        if (n < max) {
            ret[n] = (struct broken_downstream){ .answered_ms = one->answered_ms,
                                                 .put_off_ms = one->put_off_ms };
            memcpy(ret[n].repo, one->repo, sizeof(one->repo));
        }
        n++;
    }
    return n;
}
