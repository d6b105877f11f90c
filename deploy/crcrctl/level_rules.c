#include "level_rules.h"

#define MINUTE_MS 60000
#define HOUR_MS   (60 * (int64_t)MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

/* ---- criteria -------------------------------------------------------------------------------- */

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

static struct level_criterion pass_rate(const struct level_rules *r, const struct level_figures *f)
{
    return share("pass_rate", f->successful, f->jobs, r->min_pass_pct, true);
}

static struct level_criterion e2e(const struct level_rules *r, const struct level_figures *f)
{
    return span("e2e_p50", f->e2e_median_ms, r->max_e2e_ms, false, f->runs, "runs");
}

static struct level_criterion timeouts(const struct level_rules *r, const struct level_figures *f)
{
    return share("timeouts", f->timed_out, f->jobs, r->max_timeout_pct, false);
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

void level_ready(const struct level_rules *rules, const struct level_figures *figures,
                 int64_t tenure_ms, struct level_verdict *ret)
{
    *ret = (struct level_verdict){ .n = 6 };
    ret->at[0] = span("tenure", tenure_ms, rules->min_tenure_ms, true, 0, "");
    ret->at[1] = pass_rate(rules, figures);
    ret->at[2] = e2e(rules, figures);
    ret->at[3] = share("overrun", figures->overrun, figures->timed, rules->max_overrun_pct, false);
    ret->at[4] = span("queue_mean", figures->queue_mean_ms, rules->max_queue_ms, false,
                      figures->queued, "jobs");
    ret->at[5] = timeouts(rules, figures);
    sum_up(ret, false, figures);
}

void level_keep(const struct level_rules *rules, const struct level_figures *figures,
                struct level_verdict *ret)
{
    *ret = (struct level_verdict){ .n = 3 };
    ret->at[0] = pass_rate(rules, figures);
    ret->at[1] = timeouts(rules, figures);
    ret->at[2] = e2e(rules, figures);
    sum_up(ret, true, figures);
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
