/* What the gate tells others: breakers that opened or closed, and its metrics. */
#include "../base/clock.h"
#include "gate_private.h"

#define REPORT_MS 1000

bool gate_news(struct gate *g, struct gate_news *ret)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&g->lock);
    bool found = false, look = now_ms >= g->news_ms;
    for (struct account *a = NULL; look && !found && (a = table_next(&g->accounts, a));) {
        bool forgotten = gate_is_open(a) && a->asked_ms < now_ms - GATE_IDLE_MS;
        if (forgotten)
            a->failures = 0;
        found = a->reported_open != gate_is_open(a);
        if (!found)
            continue;
        a->reported_open = gate_is_open(a);
        *ret = (struct gate_news){ .open = a->reported_open, .forgotten = forgotten };
        str_copy(ret->account, sizeof(ret->account), table_key(a));
        str_copy(ret->error, sizeof(ret->error), str_of(a->error));
    }
    if (look && !found)
        g->news_ms = now_ms + REPORT_MS;
    pthread_mutex_unlock(&g->lock);
    return found;
}

static void lower(int64_t *least, int64_t left)
{
    if (*least < 0 || left < *least)
        *least = left;
}

void gate_report(struct gate_user *u, struct metrics *m, const struct budget_families *to,
                 struct str who)
{
    struct gate *g = u->gate;
    int64_t now_us = clock_mono_us(), at_github = -1;
    bool is_time = now_us >= u->report_us;
    if (is_time)
        u->report_us = now_us + REPORT_MS * 1000;
    pthread_mutex_lock(&g->lock);
    for (const struct account *a = NULL; is_time && (a = table_next(&g->accounts, a));)
        if (a->reset_ms) /* once GitHub's hour is over it has its whole limit again */
            lower(&at_github, a->reset_ms * 1000 <= now_us && a->limit > 0 ? a->limit : a->left);
    if (at_github >= 0)
        metrics_set(m, to->github, METRIC_LABELS(who), (double)at_github);
    for (enum budget_class c = 0; c < BUDGET_CLASSES; c++)
        for (enum budget_bucket i = 0; i < BUDGET_BUCKETS; i++) {
            const struct str *labels =
                METRIC_LABELS(str_of(budget_class_names[c]), str_of(budget_bucket_names[i]));
            int64_t left = -1;
            for (const struct account *a = NULL; is_time && (a = table_next(&g->accounts, a));) {
                struct budget_rules rules = gate_rules_of(g, a, false);
                lower(&left, budget_left(&rules, i, c, a->state.full_us[i] - now_us));
            }
            if (left >= 0)
                metrics_set(m, to->left, labels, (double)left);
            if (g->waits[c][i])
                metrics_add(m, to->waits, labels, (double)g->waits[c][i]);
            g->waits[c][i] = 0;
        }
    pthread_mutex_unlock(&g->lock);
}
