/* What the figures mean: ready for L3, or not good enough to stay there (rfcs#102; behaviour.md,
 * Levels). A demotion criterion is the complement of the readiness criterion of the same name.
 * PURE. */
#ifndef CRCR_CTL_LEVEL_RULES_H
#define CRCR_CTL_LEVEL_RULES_H

#include "levels.h"

/* The thresholds of behaviour.md are the defaults of the options of `levels` in verbs.c. */
struct level_rules {
    double min_pass_pct, max_overrun_pct, max_timeout_pct;
    int64_t max_e2e_ms, max_queue_ms, overrun_ms, min_tenure_ms;
    int64_t ready_window_ms, demote_window_ms;
};

enum level_unit { UNIT_PERCENT, UNIT_MS };

/* One criterion: what was measured against what. */
struct level_criterion {
    const char *name; /* "pass_rate", … */
    enum level_unit unit;
    bool at_least; /* value ≥ limit; else value < limit */
    bool known;    /* false: nothing was measured; value is then 0 */
    double value, limit;
    size_t over;    /* how many `of` it was measured over */
    const char *of; /* "jobs", "runs", "" */
    bool ok;        /* readiness: known and within. Demotion: not known, or within */
};
#define LEVEL_CRITERIA_MAX 6

struct level_verdict {
    struct level_criterion at[LEVEL_CRITERIA_MAX];
    size_t n;
    bool all_ok;
    bool no_jobs; /* nothing can be said: not ready, and no reason to demote */
};

/* tenure_ms: how long at L2; -1 unknown. */
void level_ready(const struct level_rules *rules, const struct level_figures *figures,
                 int64_t tenure_ms, struct level_verdict *ret);
/* Demoted when there are jobs and not all_ok. */
void level_keep(const struct level_rules *rules, const struct level_figures *figures,
                struct level_verdict *ret);
/* "pass rate 85.0 %, at least 90 % wanted, over 20 jobs; …": the criteria that are not ok. */
void level_reason(const struct level_verdict *verdict, struct buf *to);
/* "85.0 %", "2 h 05 min", "41.2 d". */
void level_value(struct buf *to, enum level_unit unit, double value);

#endif
