#include "dispatch_day.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "../../common/base/table.h"
#include "../../common/model/figures.h"

#define HOURS        24
#define HOUR_MS      (DISPATCH_DAY_MS / HOURS)
#define REPOS_MAX    10000
#define SHOWN        50
#define FORGOTTEN_MS (15 * 60 * 1000LL)

struct downstream_times {
    int64_t answered_ms, put_off_ms; /* the newest answer, and task that was put off; 0: none */
    /* Of dispatches: the newest that GitHub took, the newest calls without effect, and the first of
     * each hour that GitHub took. */
    int64_t dispatched_ms, failed_ms[DISPATCH_FAILED_MAX], first_ms[HOURS];
    struct {
        int64_t at_ms; /* 0: none */
        enum outcome_kind outcome;
        int http_status;
        char error[200];
    } last; /* that says how it is: taken, or not */
};

struct hour {
    int64_t hour; /* since 1970 */
    int64_t dispatched, failed;
    struct figures times; /* FIGURE_QUEUE: until the call */
};

struct dispatch_day {
    struct hour hours[HOURS];
    struct table downstreams; /* by name, in lower case */
};

struct dispatch_day *dispatch_day_new(void)
{
    struct dispatch_day *d = mem_alloc(1, sizeof(*d));
    d->downstreams.size = sizeof(struct downstream_times);
    return d;
}

void dispatch_day_free(struct dispatch_day *d)
{
    if (!d)
        return;
    table_clear(&d->downstreams);
    free(d);
}

static void dispatch_count(struct dispatch_day *d, const struct outcome *o)
{
    int64_t hour = o->at_ms / HOUR_MS;
    struct hour *h = &d->hours[hour % HOURS];
    if (h->hour > hour) /* it was 24 hours ago */
        return;
    if (h->hour < hour)
        *h = (struct hour){ .hour = hour };
    h->failed += o->outcome == OUTCOME_FAILED;
    h->dispatched += o->outcome == OUTCOME_DISPATCHED;
    if (o->outcome == OUTCOME_DISPATCHED && o->received_ms > 0 && !*o->source && !*o->again)
        figures_add_time(&h->times, FIGURE_QUEUE, o->at_ms - o->received_ms);
}

/* Whether the breaker of its owner is open, as far as the topic says. */
static bool is_broken(const struct downstream_times *one, int64_t now_ms)
{
    return one->put_off_ms > one->answered_ms && one->put_off_ms > now_ms - FORGOTTEN_MS;
}

/* A call, by what came of it: taken by GitHub, or without effect. */
static void note_call(struct downstream_times *one, const struct outcome *o)
{
    bool failed = o->outcome == OUTCOME_FAILED || o->outcome == OUTCOME_UNKNOWN ||
                  (o->outcome == OUTCOME_WAITING && o->reason == REASON_FAILED);
    int64_t *oldest = &one->failed_ms[0], *first = &one->first_ms[o->at_ms / HOUR_MS % HOURS];
    if (!failed && o->outcome != OUTCOME_DISPATCHED)
        return;
    for (size_t i = 1; i < DISPATCH_FAILED_MAX; i++)
        oldest = one->failed_ms[i] < *oldest ? &one->failed_ms[i] : oldest;
    if (failed && o->at_ms > *oldest)
        *oldest = o->at_ms;
    if (!failed && o->at_ms > one->dispatched_ms)
        one->dispatched_ms = o->at_ms;
    if (!failed && (*first / HOUR_MS != o->at_ms / HOUR_MS || o->at_ms < *first))
        *first = o->at_ms;
    if (o->at_ms < one->last.at_ms)
        return;
    one->last.at_ms = o->at_ms;
    one->last.outcome = o->outcome;
    one->last.http_status = o->http_status;
    str_copy(one->last.error, sizeof(one->last.error),
             str_cut(str_of(o->error), sizeof(one->last.error) - 1));
}

/* As breaker_answered in gate.c: any answer ends it, also a refusal. */
static void breaker_note(struct dispatch_day *d, const struct outcome *o)
{
    bool answered = (o->outcome == OUTCOME_DISPATCHED || o->outcome == OUTCOME_FAILED) &&
                    o->http_status >= 200 && o->http_status < 500;
    bool put_off = o->outcome == OUTCOME_WAITING && o->reason == REASON_BREAKER;
    char repo[REPO_MAX + 1];
    str_lower(repo, sizeof(repo), str_of(o->repo));
    struct downstream_times *one = table_get(&d->downstreams, str_of(repo));
    bool is_dispatch = strcmp(o->kind, task_kind_name(TASK_DISPATCH)) == 0;
    if (!one && (answered || put_off || is_dispatch) && table_count(&d->downstreams) < REPOS_MAX)
        one = table_make(&d->downstreams, str_of(repo));
    if (one && is_dispatch)
        note_call(one, o);
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
        dispatch_count(d, o);
    breaker_note(d, o);
}

static void put_breakers(struct buf *to, const struct dispatch_day *d, int64_t now_ms)
{
    const struct downstream_times *one = NULL;
    int64_t n = 0;
    json_put_begin(to, "breakers", '{');
    json_put_begin(to, "downstreams", '[');
    while (d && (one = table_next(&d->downstreams, one))) {
        if (!is_broken(one, now_ms) || ++n > SHOWN)
            continue;
        json_put_begin(to, NULL, '{');
        json_put_text(to, "repo", table_key(one));
        json_put_time(to, "answered_at", one->answered_ms);
        json_put_time(to, "put_off_at", one->put_off_ms);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
    json_put_number(to, "open", d ? n : -1);
    buf_putc(to, '}');
}

void dispatch_day_put(struct buf *to, const struct dispatch_day *d, int64_t now_ms)
{
    struct hour sum = { 0 };
    for (const struct hour *h = d ? d->hours : NULL; d && h < d->hours + HOURS; h++) {
        if (h->hour <= now_ms / HOUR_MS - HOURS)
            continue;
        sum.dispatched += h->dispatched;
        sum.failed += h->failed;
        figures_add(&sum.times, &h->times);
    }
    json_put_begin(to, "dispatches", '{');
    json_put_number(to, "dispatched", d ? sum.dispatched : -1);
    json_put_number(to, "failed", d ? sum.failed : -1);
    json_put_seconds(to, "p50_seconds", figures_quantile_ms(&sum.times, FIGURE_QUEUE, 0.5));
    json_put_seconds(to, "p99_seconds", figures_quantile_ms(&sum.times, FIGURE_QUEUE, 0.99));
    buf_putc(to, '}');
    put_breakers(to, d, now_ms);
}

void dispatch_day_put_one(struct buf *to, const struct dispatch_day *d, struct str repo,
                          int64_t heard_ms, int64_t silent_ms, int64_t now_ms)
{
    char name[REPO_MAX + 1];
    str_lower(name, sizeof(name), repo);
    const struct downstream_times *one = d ? table_get(&d->downstreams, str_of(name)) : NULL;
    int64_t failed = 0, since_ms = 0;
    json_put_name(to, "dispatches");
    buf_puts(to, one ? "{" : "null");
    if (!one)
        return;
    for (size_t i = 0; i < DISPATCH_FAILED_MAX; i++)
        failed += one->failed_ms[i] > one->dispatched_ms;
    for (size_t i = 0; i < HOURS; i++)
        if (one->first_ms[i] > heard_ms && one->first_ms[i] > now_ms - DISPATCH_DAY_MS &&
            (!since_ms || one->first_ms[i] < since_ms))
            since_ms = one->first_ms[i];
    bool silent = since_ms && silent_ms && now_ms >= since_ms + silent_ms;
    json_put_time(to, "dispatched_at", one->dispatched_ms);
    json_put_number(to, "failed_in_a_row", failed);
    json_put_name(to, "last");
    buf_puts(to, one->last.at_ms ? "{" : "null");
    if (one->last.at_ms) {
        json_put_time(to, "at", one->last.at_ms);
        json_put_string(to, "outcome", outcome_kind_name(one->last.outcome));
        json_put_number(to, "http_status", one->last.http_status ? one->last.http_status : -1);
        json_put_string(to, "error", one->last.error);
        buf_putc(to, '}');
    }
    json_put_bool(to, "breaker_open", is_broken(one, now_ms));
    json_put_time(to, "silent_since", silent ? since_ms : 0);
    buf_putc(to, '}');
}
