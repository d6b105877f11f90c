#include "hours.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "keys.h"

#define DAY_MS   (DAY_HOURS * (int64_t)HOUR_MS)
/* Of one delivery: as many days as its jobs can end on within the time that days are kept. */
#define DAYS_MAX (DAYS_KEPT + 2)

extern const char view_hours_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script hours_script = { .source = view_hours_lua };

static const char letters[RUN_KINDS] = { [RUN_PULL] = 'p', [RUN_PUSH] = 'u', [RUN_SELF] = 'n' };

/* ---- writing --------------------------------------------------------------------------------- */

void hours_put(struct buf *to, int64_t hour, enum run_kind kind, const struct figures *f)
{
    char before[STR_NUMBER_SIZE + 4];
    snprintf(before, sizeof(before), "%" PRId64 " %c.", hour, letters[kind]);
    figures_lines(f, before, to);
}

enum err hours_tallied_get(struct redis *r, struct str delivery, struct str repo, struct buf *to,
                           struct why *why)
{
    const struct redis_value *v;
    buf_reset(to);
    enum err err =
        redis_call(r, &v, REDIS_ARGS(STR_LIT("GET"), key_tallied(NEW_KEY, delivery, repo)), why);
    if (!err && v->type == REDIS_STR)
        buf_put(to, v->text);
    return err;
}

/* Adds the days that the lines name, each once. */
static size_t days_of(struct str lines, int64_t days[DAYS_MAX], size_t n)
{
    struct str line, hour;
    int64_t at;
    while (str_split(&lines, '\n', &line)) {
        if (!str_split(&line, ' ', &hour) || !str_to_i64(hour, &at))
            continue;
        size_t i = 0;
        while (i < n && days[i] != at / DAY_HOURS)
            i++;
        if (i == n && n < DAYS_MAX)
            days[n++] = at / DAY_HOURS;
    }
    return n;
}

/* Seconds until what is kept for so many days has outlived them; 0: it has. */
static int64_t left_s(int64_t day, int64_t kept_days, int64_t now_ms)
{
    int64_t until_ms = (day + kept_days) * DAY_MS;
    return until_ms > now_ms ? (until_ms - now_ms) / 1000 + 1 : 0;
}

enum err hours_replace(struct redis *r, struct str delivery, struct str repo, struct str before,
                       struct str after, int64_t now_ms, int64_t ttl_s, bool *done, struct why *why)
{
    struct str argv[1 + 2 * DAYS_MAX + 3 + 2 * DAYS_MAX];
    char ttls[1 + 2 * DAYS_MAX][STR_NUMBER_SIZE];
    int64_t days[DAYS_MAX];
    const struct redis_value *v;
    size_t n = days_of(after, days, days_of(before, days, 0)), n_keys = 1 + 2 * n;
    struct key *keys = mem_alloc(n_keys, sizeof(*keys));
    argv[0] = key_tallied(&keys[0], delivery, repo);
    argv[n_keys] = before;
    argv[n_keys + 1] = after;
    argv[n_keys + 2] = str_number(ttls[0], ttl_s);
    for (size_t i = 0; i < n; i++) {
        size_t hours = 1 + 2 * i, day = hours + 1;
        argv[hours] = key_hours(&keys[hours], repo, days[i]);
        argv[day] = key_day(&keys[day], repo, days[i]);
        argv[n_keys + 2 + hours] = str_number(ttls[hours], left_s(days[i], HOURS_DAYS, now_ms));
        argv[n_keys + 2 + day] = str_number(ttls[day], left_s(days[i], DAYS_KEPT, now_ms));
    }
    enum err err = redis_call_script(r, &hours_script, n_keys, 2 * n_keys + 2, argv, &v, why);
    free(keys);
    if (!err)
        *done = v->type == REDIS_INT && v->integer == 1;
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* "<kind>.<name>" */
static void field_add(struct hours_point *to, struct str field, struct str value)
{
    int64_t n;
    if (field.len < 3 || field.ptr[1] != '.' || !str_to_i64(value, &n))
        return;
    for (size_t kind = 0; kind < RUN_KINDS; kind++)
        if (field.ptr[0] == letters[kind])
            figures_put(&to->of[kind], str_from(field, 2), n);
}

/* A day's hash: "<hour><kind>.<name>" where it is by the hour, else "<kind>.<name>". */
static void day_add(const struct redis_value *v, bool by_hour, int64_t day, struct hours_point *to,
                    size_t n)
{
    int64_t step_ms = by_hour ? HOUR_MS : DAY_MS;
    for (size_t i = 0; i + 1 < v->n; i += 2) {
        struct str field = v->items[i].text;
        int64_t hour = 0;
        for (; field.len && *field.ptr >= '0' && *field.ptr <= '9'; field = str_from(field, 1))
            hour = hour * 10 + (*field.ptr - '0');
        int64_t place = (day * DAY_MS + hour * HOUR_MS - to[0].at_ms) / step_ms;
        if (place >= 0 && place < (int64_t)n)
            field_add(&to[place], field, v->items[i + 1].text);
    }
}

void hours_begin(bool by_hour, int64_t now_ms, size_t n, struct hours_point *to)
{
    int64_t step_ms = by_hour ? HOUR_MS : DAY_MS, first = now_ms / step_ms - (int64_t)n + 1;
    memset(to, 0, n * sizeof(*to));
    for (size_t i = 0; i < n; i++)
        to[i].at_ms = (first + (int64_t)i) * step_ms;
}

enum err hours_read(struct redis *r, struct str repo, bool by_hour, int64_t now_ms, size_t n,
                    struct hours_point *to, struct why *why)
{
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *v;
    hours_begin(by_hour, now_ms, n, to);
    int64_t day = to[0].at_ms / DAY_MS;
    for (int64_t at = day; at <= now_ms / DAY_MS; at++) {
        struct str name = by_hour ? key_hours(NEW_KEY, repo, at) : key_day(NEW_KEY, repo, at);
        redis_batch_put(&batch, REDIS_ARGS(STR_LIT("HGETALL"), name));
    }
    for (; (v = redis_batch_next(&batch)); day++)
        day_add(v, by_hour, day, to, n);
    return batch.err;
}
