#include "levels.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/json_put.h"
#include "../base/mem.h"
#include "../base/table.h"

#define TEXT(text) ((text) ? (text) : "")
#define MINUTE_MS  60000
#define HOUR_MS    (60 * (int64_t)MINUTE_MS)
#define DAY_MS     (24 * HOUR_MS)

/* By the key of the topic. */
struct row {
    char repo[REPO_MAX + 1]; /* in lower case */
    char *run, *job;
    uint64_t attempt; /* 0 when it is no number: such rows replace nothing */
    bool ended, successful, timed_out;
    int64_t queue_ms, execution_ms, started_ms, completed_ms; /* -1 unknown */
};

struct levels {
    struct table rows;
    struct row **sorted; /* by repo, run, job, then the newest attempt first; NULL: not yet */
    size_t n;
};

struct levels *levels_new(void)
{
    struct levels *l = mem_alloc(1, sizeof(*l));
    l->rows.size = sizeof(struct row);
    return l;
}

void levels_free(struct levels *l)
{
    if (!l)
        return;
    for (struct row *r = NULL; (r = table_next(&l->rows, r));) {
        free(r->run);
        free(r->job);
    }
    table_clear(&l->rows);
    free(l->sorted);
    free(l);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int64_t time_ms(const char *text)
{
    int64_t ms;
    struct why why;
    return text && !clock_parse(str_of(text), &ms, &why) ? ms : -1;
}

void levels_put(struct levels *l, const struct result_record *row, int64_t written_ms)
{
    struct row *r = table_make(&l->rows, str_of(row->key));
    const char *conclusion = row->state == JOB_TIMED_OUT ? "timed_out" : row->conclusion;
    struct buf run;
    free(r->run);
    free(r->job);
    buf_init(&run, 16384);
    buf_printf(&run, "%s\n%s\n%s", TEXT(row->delivery_id), TEXT(row->workflow_name),
               TEXT(row->run_id));
    r->run = buf_take(&run, NULL);
    r->job = mem_dup(TEXT(row->job_name));
    (void)str_lower(r->repo, sizeof(r->repo), str_of(row->repo));
    if (!str_to_u64(str_of(row->run_attempt), &r->attempt))
        r->attempt = 0;
    r->ended = row->state == JOB_COMPLETED || row->state == JOB_TIMED_OUT;
    r->successful = result_record_is_successful(row);
    r->timed_out = r->ended && conclusion && strcmp(conclusion, "timed_out") == 0 && !r->successful;
    r->queue_ms = row->queue_ms;
    r->execution_ms = row->execution_ms;
    r->started_ms = time_ms(row->started_at);
    r->completed_ms = time_ms(row->completed_at);
    if (r->ended && (r->completed_ms < 0 || r->completed_ms > written_ms))
        r->completed_ms = written_ms;
    free(l->sorted);
    l->sorted = NULL;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int row_compare(const void *left, const void *right)
{
    const struct row *a = *(const struct row *const *)left;
    const struct row *b = *(const struct row *const *)right;
    int order = strcmp(a->repo, b->repo);
    if (order == 0)
        order = strcmp(a->run, b->run);
    if (order == 0)
        order = strcmp(a->job, b->job);
    if (order == 0)
        order = (a->attempt < b->attempt) - (a->attempt > b->attempt);
    return order != 0 ? order : str_cmp(table_key(a), table_key(b));
}

/* What is being added up. */
struct sums {
    struct level_figures *to;
    int64_t from_ms, until_ms, overrun_ms;
    int64_t queue_ms;
    int64_t *e2e_ms;
};

static bool in_window(const struct sums *s, int64_t ms)
{
    return ms > s->from_ms && ms <= s->until_ms;
}

/* Of a job the attempts are neighbours, newest first; those of the newest all count (legs of a
 * matrix may have one name). */
static void run_add(struct sums *s, struct row *const *rows, size_t n)
{
    struct level_figures *to = s->to;
    int64_t queue_ms = -1, started_ms = -1, completed_ms = -1;
    bool going = false; /* a job has not ended */
    for (size_t first = 0, end; first < n; first = end) {
        int64_t first_queue_ms = -1;
        for (end = first; end < n && strcmp(rows[end]->job, rows[first]->job) == 0; end++)
            if (rows[end]->queue_ms >= 0)
                first_queue_ms = rows[end]->queue_ms;
        for (size_t i = first; i < end && rows[i]->attempt == rows[first]->attempt; i++) {
            const struct row *r = rows[i];
            int64_t waited_ms = r->queue_ms >= 0 ? r->queue_ms : first_queue_ms;
            if (!r->ended) {
                going = true;
                continue;
            }
            if (waited_ms > queue_ms)
                queue_ms = waited_ms;
            if (r->started_ms >= 0 && (started_ms < 0 || r->started_ms < started_ms))
                started_ms = r->started_ms;
            if (r->completed_ms > completed_ms)
                completed_ms = r->completed_ms;
            if (!in_window(s, r->completed_ms))
                continue;
            to->jobs++;
            to->successful += r->successful;
            to->timed_out += r->timed_out;
            if (waited_ms >= 0) {
                to->queued++;
                s->queue_ms += waited_ms;
            }
            if (!r->timed_out && r->execution_ms >= 0) {
                to->timed++;
                to->overrun += r->execution_ms > s->overrun_ms;
            }
        }
    }
    if (going || started_ms < 0 || !in_window(s, completed_ms))
        return;
    int64_t took_ms = completed_ms > started_ms ? completed_ms - started_ms : 0;
    s->e2e_ms[to->runs++] = took_ms + (queue_ms > 0 ? queue_ms : 0);
}

static int ms_compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Of an even number: halfway between the two in the middle. */
static int64_t median(int64_t *values, size_t n)
{
    if (n == 0)
        return -1;
    qsort(values, n, sizeof(*values), ms_compare);
    int64_t low = values[(n - 1) / 2], high = values[n / 2];
    return low + (high - low) / 2;
}

void levels_figures(struct levels *l, struct str repo, int64_t from_ms, int64_t until_ms,
                    int64_t overrun_ms, struct level_figures *ret)
{
    char key[REPO_MAX + 1];
    (void)str_lower(key, sizeof(key), repo);
    *ret = (struct level_figures){ .queue_mean_ms = -1 };
    if (!l->sorted) {
        l->n = 0;
        l->sorted = mem_alloc(table_count(&l->rows) + 1, sizeof(struct row *));
        for (struct row *r = NULL; (r = table_next(&l->rows, r));)
            l->sorted[l->n++] = r;
        qsort(l->sorted, l->n, sizeof(struct row *), row_compare);
    }
    size_t first = 0, end;
    while (first < l->n && strcmp(l->sorted[first]->repo, key) < 0)
        first++;
    end = first;
    while (end < l->n && strcmp(l->sorted[end]->repo, key) == 0)
        end++;
    struct sums s = {
        .to = ret, .from_ms = from_ms, .until_ms = until_ms, .overrun_ms = overrun_ms
    };
    s.e2e_ms = mem_alloc(end - first + 1, sizeof(*s.e2e_ms));
    for (size_t at = first, next; at < end; at = next) {
        for (next = at + 1; next < end && strcmp(l->sorted[next]->run, l->sorted[at]->run) == 0;)
            next++;
        run_add(&s, l->sorted + at, next - at);
    }
    if (ret->queued > 0)
        ret->queue_mean_ms = s.queue_ms / (int64_t)ret->queued;
    ret->e2e_median_ms = median(s.e2e_ms, ret->runs);
    free(s.e2e_ms);
}

/* ---- criteria -------------------------------------------------------------------------------- */

const struct level_rules level_rules_default = {
    .min_pass_pct = 90,
    .max_overrun_pct = 1,
    .max_timeout_pct = 1,
    .max_e2e_ms = 3 * HOUR_MS,
    .max_queue_ms = 30 * MINUTE_MS,
    .overrun_ms = 3 * HOUR_MS,
    .min_tenure_ms = 30 * DAY_MS,
    .ready_window_ms = 14 * DAY_MS,
    .demote_window_ms = 7 * DAY_MS,
};

static struct level_criterion share(const char *name, size_t part, size_t whole, double limit,
                                    bool at_least)
{
    struct level_criterion c = { .name = name,
                                 .unit = UNIT_PERCENT,
                                 .at_least = at_least,
                                 .limit = limit,
                                 .over = whole,
                                 .of = "jobs" };
    double scaled = (double)part * 100;
    c.known = whole > 0;
    c.value = c.known ? scaled / (double)whole : 0;
    /* multiplied, not divided: 9 of 10 are 90 % exactly */
    c.ok = at_least ? scaled >= limit * (double)whole : scaled < limit * (double)whole;
    return c;
}

static struct level_criterion span(const char *name, int64_t ms, int64_t limit_ms, bool at_least,
                                   size_t over, const char *of)
{
    struct level_criterion c = { .name = name,
                                 .unit = UNIT_MS,
                                 .at_least = at_least,
                                 .limit = (double)limit_ms,
                                 .over = over,
                                 .of = of };
    c.known = ms >= 0;
    c.value = c.known ? (double)ms : 0;
    c.ok = at_least ? ms >= limit_ms : ms < limit_ms;
    return c;
}

static void sum_up(struct level_verdict *v, bool unknown_is_ok, const struct level_figures *figures)
{
    v->no_jobs = figures->jobs == 0;
    v->all_ok = true;
    for (size_t i = 0; i < v->n; i++) {
        if (!v->at[i].known)
            v->at[i].ok = unknown_is_ok;
        v->all_ok = v->all_ok && v->at[i].ok;
    }
}

void level_ready(const struct level_rules *rules, const struct level_figures *f, int64_t tenure_ms,
                 struct level_verdict *ret)
{
    *ret = (struct level_verdict){
        .n = 6,
        .at = { span("tenure", tenure_ms, rules->min_tenure_ms, true, 0, ""),
                share("pass_rate", f->successful, f->jobs, rules->min_pass_pct, true),
                span("e2e_p50", f->e2e_median_ms, rules->max_e2e_ms, false, f->runs, "runs"),
                share("overrun", f->overrun, f->timed, rules->max_overrun_pct, false),
                span("queue_mean", f->queue_mean_ms, rules->max_queue_ms, false, f->queued, "jobs"),
                share("timeouts", f->timed_out, f->jobs, rules->max_timeout_pct, false) },
    };
    sum_up(ret, false, f);
}

void level_keep(const struct level_rules *rules, const struct level_figures *f,
                struct level_verdict *ret)
{
    *ret = (struct level_verdict){
        .n = 3,
        .at = { share("pass_rate", f->successful, f->jobs, rules->min_pass_pct, true),
                share("timeouts", f->timed_out, f->jobs, rules->max_timeout_pct, false),
                span("e2e_p50", f->e2e_median_ms, rules->max_e2e_ms, false, f->runs, "runs") },
    };
    sum_up(ret, true, f);
}

/* ---- text ------------------------------------------------------------------------------------ */

void level_value(struct buf *to, enum level_unit unit, double value)
{
    int64_t ms = (int64_t)value;
    if (unit == UNIT_PERCENT)
        buf_printf(to, value < 1 && value > 0 ? "%.2f %%" : "%.1f %%", value);
    else if (ms >= 2 * DAY_MS)
        buf_printf(to, "%.1f d", value / DAY_MS);
    else if (ms >= HOUR_MS)
        buf_printf(to, "%d h %02d min", (int)(ms / HOUR_MS), (int)(ms % HOUR_MS / MINUTE_MS));
    else if (ms >= MINUTE_MS)
        buf_printf(to, "%d min %02d s", (int)(ms / MINUTE_MS), (int)(ms % MINUTE_MS / 1000));
    else
        buf_printf(to, "%.1f s", value / 1000);
}

void level_criterion_to_json(const struct level_criterion *c, struct buf *to)
{
    double unit = c->unit == UNIT_PERCENT ? 1 : 1000; /* times in seconds */
    json_put_comma(to);
    buf_putc(to, '{');
    json_put_text(to, "name", str_of(c->name));
    json_put_name(to, "value");
    if (c->known)
        buf_printf(to, "%.3f", c->value / unit);
    else
        buf_puts(to, "null");
    json_put_text(to, "unit", str_of(c->unit == UNIT_PERCENT ? "percent" : "seconds"));
    json_put_text(to, "wanted", str_of(c->at_least ? ">=" : "<"));
    json_put_name(to, "threshold");
    buf_printf(to, "%.3f", c->limit / unit);
    json_put_name(to, "ok");
    buf_puts(to, c->ok ? "true" : "false");
    json_put_number(to, "over", (int64_t)c->over);
    json_put_text(to, "of", *c->of ? str_of(c->of) : STR_NONE);
    buf_putc(to, '}');
}

void level_reason(const struct level_verdict *verdict, struct buf *to)
{
    const char *between = "";
    for (size_t i = 0; i < verdict->n; i++) {
        const struct level_criterion *c = &verdict->at[i];
        if (c->ok)
            continue;
        buf_printf(to, "%s%s ", between, c->name);
        level_value(to, c->unit, c->value);
        buf_puts(to, c->at_least ? ", at least " : ", below ");
        level_value(to, c->unit, c->limit);
        buf_printf(to, " wanted, over %zu %s", c->over, c->of);
        between = "; ";
    }
}
