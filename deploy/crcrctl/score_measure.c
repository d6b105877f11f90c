#include "score_measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "table.h"

#define DAY_MS 86400000.0

/* A job of a run, over its attempts; by run, workflow and job. */
struct job {
    bool failed, succeeded;
};
struct end {
    int64_t at_ms;
    bool success;
};
struct score_measure {
    char repo[REPO_MAX + 1];
    struct table jobs;
    struct end *ends;
    size_t n, cap;
};

struct score_measure *score_measure_new(struct str repo)
{
    struct score_measure *m = mem_alloc(1, sizeof(*m));
    m->jobs.size = sizeof(struct job);
    str_copy(m->repo, sizeof(m->repo), repo);
    return m;
}

void score_measure_free(struct score_measure *m)
{
    if (!m)
        return;
    table_clear(&m->jobs);
    free(m->ends);
    free(m);
}

void score_measure_put(struct score_measure *m, const struct result_record *row, int64_t written_ms)
{
    bool success = str_is(str_of(row->conclusion ? row->conclusion : ""), "success");
    bool ended = row->state == JOB_COMPLETED || row->state == JOB_TIMED_OUT;
    char key[1024];
    if (!ended || row->level < 2 || !str_eq_nocase(str_of(row->repo), str_of(m->repo)))
        return;
    snprintf(key, sizeof(key), "%s\n%s\n%s", row->run_id ? row->run_id : "",
             row->workflow_name ? row->workflow_name : "", row->job_name ? row->job_name : "");
    struct job *job = table_make(&m->jobs, str_of(key));
    job->succeeded |= success;
    job->failed |= !success;
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->ends = mem_resize(m->ends, m->cap, sizeof(*m->ends));
    }
    m->ends[m->n++] = (struct end){ written_ms, success };
}

static int by_time(const void *left, const void *right)
{
    const struct end *a = left, *b = right;
    return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* From the first job that ended badly to the next success, or to now. */
static int64_t longest_outage(struct score_measure *m, int64_t now_ms)
{
    int64_t longest = 0, began_ms = -1;
    qsort(m->ends, m->n, sizeof(*m->ends), by_time);
    for (size_t i = 0; i <= m->n; i++) {
        bool last = i == m->n;
        int64_t at_ms = last ? now_ms : m->ends[i].at_ms;
        if (!last && !m->ends[i].success) {
            began_ms = began_ms < 0 ? at_ms : began_ms;
            continue;
        }
        if (began_ms >= 0 && at_ms - began_ms > longest)
            longest = at_ms - began_ms;
        began_ms = -1;
    }
    return longest;
}

static double flaky_pct(const struct score_measure *m)
{
    size_t flaky = 0;
    for (const struct job *one = NULL; (one = table_next(&m->jobs, one));)
        flaky += one->failed && one->succeeded;
    return 100.0 * (double)flaky / (double)table_count(&m->jobs);
}

/* The item with full points or none; its note is written by the caller. */
static struct score_item *fill(struct scorecard *card, const char *name, bool good, int64_t now_ms)
{
    int i = score_rule_find(str_of(name));
    struct score_item *item = &card->at[i];
    char at[CLOCK_TEXT_SIZE];
    clock_format(now_ms, at);
    *item = (struct score_item){ .score = good ? score_rules[i].max : 0,
                                 .claimed = item->claimed,
                                 .measured = true,
                                 .evidence = "the relay's own results" };
    snprintf(item->date, sizeof(item->date), "%.10s", at);
    return item;
}

void score_measure_fill(struct score_measure *m, int64_t now_ms, struct scorecard *card)
{
    static const char *const names[] = { "ci_cd.accessibility", "ci_cd.tests_stability",
                                         "ci_cd.stability" };
    struct score_item *item;
    for (size_t i = 0; m->n == 0 && i < sizeof(names) / sizeof(*names); i++) {
        item = &card->at[score_rule_find(str_of(names[i]))];
        snprintf(item->note, sizeof(item->note), "not measured: no job of %s ended", m->repo);
    }
    if (m->n == 0)
        return;
    double flaky = flaky_pct(m);
    int64_t outage_ms = longest_outage(m, now_ms);
    item = fill(card, names[0], true, now_ms);
    snprintf(item->note, sizeof(item->note), "%zu jobs ended, all on the HUD", m->n);
    item = fill(card, names[1], flaky < SCORE_FLAKY_PCT, now_ms);
    snprintf(item->note, sizeof(item->note), "%.1f %% of %zu jobs failed and succeeded in one run",
             flaky, table_count(&m->jobs));
    item = fill(card, names[2], outage_ms <= SCORE_OUTAGE_MS, now_ms);
    snprintf(item->note, sizeof(item->note), "longest time without a success %.1f d",
             (double)outage_ms / DAY_MS);
}
