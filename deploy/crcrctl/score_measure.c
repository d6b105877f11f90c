#include "score_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"

#define DAY_MS 86400000.0

/* A job of a run, over its attempts. */
struct job {
    UT_hash_handle hh;
    bool failed, succeeded;
    char key[]; /* run, workflow, job */
};
struct end {
    int64_t at_ms;
    bool success;
};
struct score_measure {
    char repo[REPO_MAX + 1];
    struct job *jobs;
    struct end *ends;
    size_t n, cap;
};

struct score_measure *score_measure_new(struct str repo)
{
    struct score_measure *m = mem_alloc(1, sizeof(*m));

    str_copy(m->repo, sizeof(m->repo), repo);
    return m;
}

void score_measure_free(struct score_measure *m)
{
    struct job *one, *next;

    if (!m)
        return;
    HASH_ITER(hh, m->jobs, one, next)
    {
        HASH_DEL(m->jobs, one);
        free(one);
    }
    free(m->ends);
    free(m);
}

static struct job *job_of(struct score_measure *m, const struct result_record *row)
{
    const char *parts[] = { row->run_id, row->workflow_name, row->job_name };
    char key[1024];
    struct job *found;
    size_t used = 0;

    for (size_t i = 0; i < 3 && used < sizeof(key); i++)
        used += (size_t)snprintf(key + used, sizeof(key) - used, "%s\n", parts[i] ? parts[i] : "");
    if (used >= sizeof(key))
        used = sizeof(key) - 1;
    HASH_FIND(hh, m->jobs, key, used, found);
    if (found)
        return found;
    found = mem_alloc(1, sizeof(*found) + used + 1);
    memcpy(found->key, key, used);
    HASH_ADD_KEYPTR(hh, m->jobs, found->key, used, found);
    return found;
}

void score_measure_put(struct score_measure *m, const struct result_record *row, int64_t written_ms)
{
    bool success = str_is(str_of(row->conclusion ? row->conclusion : ""), "success");
    bool ended = row->state == JOB_COMPLETED || row->state == JOB_TIMED_OUT;

    if (!ended || row->level < 2 || !str_eq_nocase(str_of(row->repo), str_of(m->repo)))
        return;
    struct job *job = job_of(m, row);
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
    const struct job *one, *next;
    size_t flaky = 0;

    HASH_ITER(hh, m->jobs, one, next)
    {
        flaky += one->failed && one->succeeded;
    }
    return 100.0 * (double)flaky / (double)HASH_COUNT(m->jobs);
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
    snprintf(item->note, sizeof(item->note), "%.1f %% of %u jobs failed and succeeded in one run",
             flaky, HASH_COUNT(m->jobs));
    item = fill(card, names[2], outage_ms <= SCORE_OUTAGE_MS, now_ms);
    snprintf(item->note, sizeof(item->note), "longest time without a success %.1f d",
             (double)outage_ms / DAY_MS);
}
