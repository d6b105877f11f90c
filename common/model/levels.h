/* How each downstream does: the figures that decide about levels (rfcs#102;
 * deploy/crcrctl/README.md, "Levels"). Rows of the topic results go in, figures of a repository and
 * a window of time come out; which jobs and runs count: counted_runs.h. PURE.
 *
 *   overrun  a job whose execution took longer than a limit; those that timed out are counted there
 */
#ifndef CRCR_MODEL_LEVELS_H
#define CRCR_MODEL_LEVELS_H

#include "counted_runs.h"

struct level_figures {
    size_t jobs;
    size_t successful; /* conclusion success; all else counts against */
    size_t timed_out;
    size_t queued;         /* runs whose queue time is known */
    int64_t queue_mean_ms; /* -1: none */
    size_t timed;          /* jobs whose execution time is known and that did not time out */
    size_t overrun;        /* of these */
    size_t runs;
    int64_t e2e_median_ms; /* -1: no run */
};

struct levels;

struct levels *levels_new(void);
void levels_free(struct levels *l);
/* One row of results, in the order of the topic: a later one of the same key replaces it.
 * written_ms is the record's time: a row that says it ended after that is taken to have ended then,
 * so that nobody reports out of a window. Text is copied. */
void levels_put(struct levels *l, const struct result_record *row, int64_t written_ms);
/* Of what ended after from_ms, and not after until_ms. A re-run has no queue time of its own: it
 * keeps that of the first attempt. */
void levels_figures(struct levels *l, struct str repo, enum run_kind runs, int64_t from_ms,
                    int64_t until_ms, int64_t overrun_ms, struct level_figures *ret);

/* ---- what they mean -------------------------------------------------------------------------- */

/* Ready for L3, or not good enough to stay there. A demotion criterion is the complement of the
 * readiness criterion of the same name.
 */
struct level_rules {
    double min_pass_pct, max_overrun_pct, max_timeout_pct;
    int64_t max_e2e_ms, max_queue_ms, overrun_ms, min_tenure_ms;
    int64_t ready_window_ms, demote_window_ms;
};

/* The defaults; options of `crcrctl levels` change them. */
extern const struct level_rules level_rules_default;

/* What decides about a repository of this level: jobs that ended within so long. */
int64_t level_window_ms(const struct level_rules *rules, int level);
/* Where that begins: with a full hour, so that all who look within an hour see the same. */
int64_t level_measured_from(const struct level_rules *rules, int level, int64_t now_ms);

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
    bool shown;     /* alone: nothing follows, and ok says nothing */
};
#define LEVEL_CRITERIA_MAX 6

struct level_verdict {
    struct level_criterion at[LEVEL_CRITERIA_MAX];
    size_t n;
    bool all_ok;
    bool no_jobs; /* nothing can be said: not ready, and no reason to demote */
};

/* What the figures say of a repository at this level: at L2 whether it is ready for L3, at L3
 * whether it stays there; at L4 they are only shown, since people decide; below nothing (n is 0).
 * tenure_ms: how long at L2, all stays together, of which full hours count; -1 unknown. */
void level_verdict_get(const struct level_rules *rules, int level, const struct level_figures *f,
                       int64_t tenure_ms, struct level_verdict *ret);
/* The level that follows: 3 from L2 when all is ok, 2 from L3 when there are jobs and not all is;
 * else 0: it stays where it is. */
int level_proposed(int level, const struct level_verdict *verdict);
/* "pass rate 85.0 %, at least 90 % wanted, over 20 jobs; …": the criteria that are not ok. */
void level_reason(const struct level_verdict *verdict, struct buf *to);
/* An element of an array: {"name", "value": null where nothing was measured, "unit": percent or
 * seconds, "wanted": ">=" or "<", "threshold", "ok": null where
 * nothing was measured or it is shown alone, "over", "of": null or "jobs", "runs"}. */
void level_criterion_to_json(const struct level_criterion *c, struct buf *to);
/* "85.0 %", "2 h 05 min", "41.2 d". */
void level_value(struct buf *to, enum level_unit unit, double value);

#endif
