#include "levels.h"

#include <stdlib.h>
#include <string.h>

#include "../base/json_put.h"
#include "../base/mem.h"
#include "../base/table.h"
#include "counted_runs.h"

#define MINUTE_MS 60000
#define HOUR_MS   (60 * (int64_t)MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

struct levels {
    struct table jobs;       /* struct run_job by the key of the topic */
    struct run_job **sorted; /* all of them; NULL: not yet */
    struct run_end *runs;
    size_t n_runs;
};

struct levels *levels_new(void)
{
    struct levels *l = mem_alloc(1, sizeof(*l));
    l->jobs.size = sizeof(struct run_job);
    return l;
}

static void forget(struct levels *l)
{
    free(l->sorted);
    free(l->runs);
    l->sorted = NULL;
    l->runs = NULL;
}

void levels_free(struct levels *l)
{
    if (!l)
        return;
    for (struct run_job *job = NULL; (job = table_next(&l->jobs, job));)
        run_job_clear(job);
    table_clear(&l->jobs);
    forget(l);
    free(l);
}

void levels_put(struct levels *l, const struct result_record *row, int64_t written_ms)
{
    struct run_job *job = table_make(&l->jobs, str_of(row->key));
    run_job_clear(job);
    run_job_init(job, row, written_ms);
    job->key = table_key(job).ptr; /* the row is the caller's */
    forget(l);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void ends_find(struct levels *l)
{
    size_t n = table_count(&l->jobs), at = 0;
    l->sorted = mem_alloc(n + 1, sizeof(struct run_job *));
    l->runs = mem_alloc(n + 1, sizeof(*l->runs));
    for (struct run_job *job = NULL; (job = table_next(&l->jobs, job));)
        l->sorted[at++] = job;
    l->n_runs = counted_runs_find(l->sorted, n, l->runs);
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

static bool is_of(const struct run_job *job, struct str repo, enum run_kind runs)
{
    struct str run = str_of(job->run), first;
    return job->kind == runs && str_split(&run, '\n', &first) && str_eq_nocase(first, repo);
}

void levels_figures(struct levels *l, struct str repo, enum run_kind runs, int64_t from_ms,
                    int64_t until_ms, int64_t overrun_ms, struct level_figures *ret)
{
    int64_t queue_ms = 0;
    if (!l->sorted)
        ends_find(l);
    int64_t *e2e_ms = mem_alloc(l->n_runs + 1, sizeof(*e2e_ms));
    *ret = (struct level_figures){ .queue_mean_ms = -1 };
    for (const struct run_job *job = NULL; (job = table_next(&l->jobs, job));) {
        if (!job->counts || job->completed_ms <= from_ms || job->completed_ms > until_ms ||
            !is_of(job, repo, runs))
            continue;
        ret->jobs++;
        ret->successful += job->successful;
        ret->timed_out += job->timed_out;
        if (!job->timed_out && job->execution_ms >= 0) {
            ret->timed++;
            ret->overrun += job->execution_ms > overrun_ms;
        }
    }
    for (const struct run_end *run = l->runs; run < l->runs + l->n_runs; run++) {
        if (run->completed_ms <= from_ms || run->completed_ms > until_ms ||
            !is_of(run->job, repo, runs))
            continue;
        if (run->e2e_ms >= 0)
            e2e_ms[ret->runs++] = run->e2e_ms;
        if (run->queue_ms >= 0) {
            ret->queued++;
            queue_ms += run->queue_ms;
        }
    }
    if (ret->queued > 0)
        ret->queue_mean_ms = queue_ms / (int64_t)ret->queued;
    ret->e2e_median_ms = median(e2e_ms, ret->runs);
    free(e2e_ms);
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

int64_t level_window_ms(const struct level_rules *rules, int level)
{
    return level == 2 ? rules->ready_window_ms : rules->demote_window_ms;
}

int64_t level_measured_from(const struct level_rules *rules, int level, int64_t now_ms)
{
    return now_ms - now_ms % HOUR_MS - level_window_ms(rules, level);
}

static struct level_criterion share(const char *name, size_t part, size_t total, double limit,
                                    bool at_least)
{
    struct level_criterion c = { .name = name,
                                 .unit = UNIT_PERCENT,
                                 .at_least = at_least,
                                 .limit = limit,
                                 .over = total,
                                 .of = "jobs" };
    double scaled = (double)part * 100;
    c.known = total > 0;
    c.value = c.known ? scaled / (double)total : 0;
    /* multiplied, not divided: 9 of 10 are 90 % exactly */
    c.ok = at_least ? scaled >= limit * (double)total : scaled < limit * (double)total;
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

static void level_ready(const struct level_rules *rules, const struct level_figures *f,
                        int64_t tenure_ms, struct level_verdict *ret)
{
    if (tenure_ms > 0)
        tenure_ms -= tenure_ms % HOUR_MS;
    *ret = (struct level_verdict){
        .n = 6,
        .at = { span("tenure", tenure_ms, rules->min_tenure_ms, true, 0, ""),
                share("pass_rate", f->successful, f->jobs, rules->min_pass_pct, true),
                span("e2e_p50", f->e2e_median_ms, rules->max_e2e_ms, false, f->runs, "runs"),
                share("overrun", f->overrun, f->timed, rules->max_overrun_pct, false),
                span("queue_mean", f->queue_mean_ms, rules->max_queue_ms, false, f->queued, "runs"),
                share("timeouts", f->timed_out, f->jobs, rules->max_timeout_pct, false) },
    };
    sum_up(ret, false, f);
}

static void level_keep(const struct level_rules *rules, const struct level_figures *f,
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

static void level_show(const struct level_rules *rules, const struct level_figures *f,
                       struct level_verdict *ret)
{
    level_keep(rules, f, ret);
    for (size_t i = 0; i < ret->n; i++)
        ret->at[i].shown = true;
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

void level_verdict_get(const struct level_rules *rules, int level, const struct level_figures *f,
                       int64_t tenure_ms, struct level_verdict *ret)
{
    *ret = (struct level_verdict){ .n = 0 };
    if (level == 2)
        level_ready(rules, f, tenure_ms, ret);
    else if (level == 3)
        level_keep(rules, f, ret);
    else if (level == 4)
        level_show(rules, f, ret);
}

int level_proposed(int level, const struct level_verdict *verdict)
{
    if (verdict->n == 0 || verdict->no_jobs)
        return 0;
    return level == 2 && verdict->all_ok ? 3 : level == 3 && !verdict->all_ok ? 2 : 0;
}

void level_criterion_to_json(const struct level_criterion *c, struct buf *to)
{
    double unit = c->unit == UNIT_PERCENT ? 1 : 1000; /* times in seconds */
    json_put_begin(to, NULL, '{');
    json_put_string(to, "name", c->name);
    json_put_name(to, "value");
    if (c->known)
        buf_printf(to, "%.3f", c->value / unit);
    else
        buf_puts(to, "null");
    json_put_string(to, "unit", c->unit == UNIT_PERCENT ? "percent" : "seconds");
    json_put_string(to, "wanted", c->at_least ? ">=" : "<");
    json_put_name(to, "threshold");
    buf_printf(to, "%.3f", c->limit / unit);
    json_put_name(to, "ok");
    buf_puts(to, c->shown || !c->known ? "null" : c->ok ? "true" : "false");
    json_put_number(to, "over", (int64_t)c->over);
    json_put_string(to, "of", c->of);
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
