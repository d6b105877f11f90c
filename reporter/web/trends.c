#include "trends.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/view/indexes.h"
#include "paths.h"

#define TRENDS_REPOS 500 /* those that were active last */
#define BY_HOUR_DAYS 7   /* up to so many days are shown by the hour */

static const char *const kind_names[RUN_KINDS] = {
    [RUN_PULL] = "pull_requests",
    [RUN_PUSH] = "pushes",
    [RUN_SELF] = "nightly",
};
static const char *const time_names[FIGURE_TIMES] = {
    [FIGURE_QUEUE] = "queue",
    [FIGURE_EXECUTION] = "execution",
    [FIGURE_E2E] = "e2e",
};

/* ---- figures --------------------------------------------------------------------------------- */

static void put_figures(struct buf *to, enum run_kind kind, const struct figures *f)
{
    int64_t done = f->count[FIGURE_COMPLETED], ok = f->count[FIGURE_SUCCESSFUL];
    int64_t cancelled = f->count[FIGURE_CANCELLED], timed_out = f->count[FIGURE_TIMED_OUT];
    json_put_begin(to, kind_names[kind], '{');
    json_put_number(to, "completed", done);
    json_put_number(to, "successful", ok);
    json_put_number(to, "failed", done - ok - cancelled - timed_out);
    json_put_number(to, "cancelled", cancelled);
    json_put_number(to, "timed_out", timed_out);
    json_put_number(to, "runs", f->count[FIGURE_RUNS]);
    json_put_name(to, "pass_rate");
    if (done > 0)
        buf_printf(to, "%.4f", (double)ok / (double)done);
    else
        buf_puts(to, "null");
    for (enum figure_time time = 0; time < FIGURE_TIMES; time++) {
        int64_t mean_ms = figures_mean_ms(f, time), p95_ms = figures_quantile_ms(f, time, 0.95);
        if (p95_ms < mean_ms && p95_ms > mean_ms - mean_ms / 20)
            p95_ms = mean_ms; /* it is within 5 %: times that are nearly equal are no surprise */
        json_put_begin(to, time_names[time], '{');
        json_put_seconds(to, "mean", mean_ms);
        json_put_seconds(to, "p95", p95_ms);
        buf_putc(to, '}');
    }
    buf_putc(to, '}');
}

/* Of one kind of run how many jobs ended, and well; RUN_KINDS: all figures of each kind. */
static void put_points(struct buf *to, const char *name, const struct hours_point *at, size_t n,
                       enum run_kind of)
{
    json_put_begin(to, name, '[');
    for (size_t i = 0; i < n; i++) {
        bool brief = of != RUN_KINDS;
        const int64_t *count = at[i].of[brief ? of : RUN_PULL].count;
        json_put_begin(to, NULL, '{');
        json_put_time(to, "at", at[i].at_ms);
        if (brief) {
            json_put_number(to, "completed", count[FIGURE_COMPLETED]);
            json_put_number(to, "successful", count[FIGURE_SUCCESSFUL]);
        }
        for (enum run_kind kind = 0; kind < RUN_KINDS && !brief; kind++)
            put_figures(to, kind, &at[i].of[kind]);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

/* ---- a window -------------------------------------------------------------------------------- */

void window_clear(struct window *w)
{
    free(w->at);
    w->at = NULL;
    w->n = 0;
}

enum err window_read(struct redis *r, struct str repo, struct window *w, struct why *why)
{
    if (!w->at) {
        w->n = w->days == 1 ? DAY_HOURS : (size_t)w->days;
        w->at = mem_alloc(w->n, sizeof(*w->at));
    }
    return hours_read(r, repo, w->days == 1, w->now_ms, w->n, w->at, why);
}

void window_put(struct buf *to, const struct window *w)
{
    struct figures sums[RUN_KINDS];
    memset(sums, 0, sizeof(sums));
    for (size_t i = 0; i < w->n; i++)
        for (size_t kind = 0; kind < RUN_KINDS; kind++)
            figures_add(&sums[kind], &w->at[i].of[kind]);
    json_put_begin(to, "window", '{');
    json_put_number(to, "days", w->days);
    for (enum run_kind kind = 0; kind < RUN_KINDS; kind++)
        put_figures(to, kind, &sums[kind]);
    buf_putc(to, '}');
    put_points(to, "spark", w->at, w->n, RUN_PULL);
}

/* ---- trends ---------------------------------------------------------------------------------- */

static void begin(struct buf *to, int64_t days, bool by_hour)
{
    buf_putc(to, '{');
    json_put_number(to, "days", days);
    json_put_text(to, "step", by_hour ? STR_LIT("hour") : STR_LIT("day"));
}

/* One downstream, by the hour (up to 7 days) or by day. */
enum err repo_trends_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                          bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) newest = { NULL, 0 };
    int64_t days = path_number(ask->params[0]);
    bool by_hour = days <= BY_HOUR_DAYS;
    size_t n = (size_t)days * (by_hour ? DAY_HOURS : 1);
    enum err err = jobs_of_repo(w->redis, ask->id, false, 1, &newest, why);
    *known = newest.n > 0;
    if (err || !*known)
        return err;
    struct hours_point *points = mem_alloc(n, sizeof(*points));
    err = hours_read(w->redis, ask->id, by_hour, clock_wall_ms(), n, points, why);
    begin(to, days, by_hour);
    put_points(to, "points", points, n, RUN_KINDS);
    buf_putc(to, '}');
    free(points);
    return err;
}

static void put_repo(struct buf *to, const struct allowlist_version *version, struct str repo,
                     const struct hours_point *points, size_t n, enum run_kind kind)
{
    const struct allowlist_entry *entry = allowlist_find(version->list, repo);
    json_put_begin(to, NULL, '{');
    json_put_text(to, "repo", entry ? entry->repo : repo);
    json_put_text(to, "level", entry ? str_of(level_name((int)entry->level)) : STR_NONE);
    put_points(to, "points", points, n, kind);
    buf_putc(to, '}');
}

static enum run_kind kind_named(struct str name)
{
    enum run_kind kind = RUN_PULL;
    while (kind < RUN_KINDS - 1 && !str_is(name, kind_names[kind]))
        kind++;
    return kind;
}

/* All together, by day, and of each how many of one kind ended well. */
enum err trends_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                     bool *known, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) active = { NULL, 0 };
    int64_t days = path_number(ask->params[0]), now_ms = clock_wall_ms();
    enum run_kind kind = kind_named(ask->params[1]);
    size_t n = (size_t)days;
    enum err err = repos_by_activity(w->redis, TRENDS_REPOS, &active, why);
    *known = true;
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    struct hours_point *one = mem_alloc(n, sizeof(*one)), *all = mem_alloc(n, sizeof(*all));
    hours_begin(false, now_ms, n, all);
    begin(to, days, false);
    json_put_begin(to, "repos", '[');
    for (size_t i = 0; !err && i < active.n; i++) {
        struct str repo = str_of(active.at[i].name);
        err = hours_read(w->redis, repo, false, now_ms, n, one, why);
        if (err)
            break;
        put_repo(to, version, repo, one, n, kind);
        for (size_t at = 0; at < n; at++)
            for (size_t each = 0; each < RUN_KINDS; each++)
                figures_add(&all[at].of[each], &one[at].of[each]);
    }
    buf_putc(to, ']');
    put_points(to, "points", all, n, RUN_KINDS);
    buf_putc(to, '}');
    allowlist_feed_release(w->reporter->feed, version);
    free(one);
    free(all);
    return err;
}
