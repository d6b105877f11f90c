/* The level of a downstream: since when, the levels before it, and whether its figures are good
 * enough for L3, with the evidence. The same rules as `crcrctl levels`, over the newest 1,000 jobs
 * of pull requests that the view has. */
#include "level.h"

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/model/ids.h"
#include "../../common/view/pull_requests.h"
#include "../aggregate.h"

/* The question for this level; NULL: none. L4's figures are shown. */
static const char *question_of(int level)
{
    return level == 2 ? "ready_for_l3" : level == 3 ? "stays_at_l3" : NULL;
}

static void history_put(const struct level_change *changes, size_t n, struct buf *to)
{
    json_put_begin(to, "history", '[');
    for (size_t i = 0; i < n; i++) {
        json_put_begin(to, NULL, '{');
        json_put_string(to, "level", level_name(changes[i].level));
        json_put_time(to, "since", changes[i].since_ms);
        buf_putc(to, '}');
    }
    buf_putc(to, ']');
}

/* Figures from the newest jobs. *from_ms: their beginning; later than the window's when there are
 * more jobs than are kept. */
static enum err figures_get(const struct web_view *w, struct str repo, int64_t now_ms,
                            int64_t *from_ms, struct level_figures *ret, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    enum err err = jobs_of_repo(w->redis, repo, true, REPO_JOBS_MAX, &jobs, why);
    if (err)
        return err;
    struct levels *levels = levels_new();
    for (size_t i = 0; i < jobs.n; i++)
        levels_put(levels, &jobs.at[i], job_last_ms(&jobs.at[i]));
    if (jobs.n >= REPO_JOBS_MAX && job_last_ms(&jobs.at[jobs.n - 1]) > *from_ms)
        *from_ms = job_last_ms(&jobs.at[jobs.n - 1]);
    levels_figures(levels, repo, RUN_PULL, *from_ms, now_ms, level_rules_default.overrun_ms, ret);
    levels_free(levels);
    return OK;
}

enum err level_of_repo(const struct web_view *w, struct str repo, int level, int64_t now_ms,
                       int64_t *from_ms, struct level_verdict *ret, struct why *why)
{
    const struct level_rules *rules = &level_rules_default;
    struct level_figures figures;
    *ret = (struct level_verdict){ .n = 0 };
    *from_ms = level_measured_from(rules, level, now_ms);
    if (level < 2)
        return OK;
    enum err err = figures_get(w, repo, now_ms, from_ms, &figures, why);
    if (err)
        return err;
    level_verdict_get(rules, level, &figures,
                      allowlist_feed_tenure_ms(w->reporter->feed, repo, 2, now_ms), ret);
    return OK;
}

static enum err criteria_put(const struct web_view *w, struct str repo, int level, int64_t now_ms,
                             struct buf *to, struct why *why)
{
    const char *question = question_of(level);
    struct level_verdict verdict;
    int64_t from_ms;
    enum err err = level_of_repo(w, repo, level, now_ms, &from_ms, &verdict, why);
    if (err)
        return err;
    json_put_string(to, "question", question);
    json_put_time(to, "measured_from", verdict.n ? from_ms : 0);
    json_put_name(to, "answer");
    buf_puts(to, !question || verdict.no_jobs ? "null" : verdict.all_ok ? "true" : "false");
    json_put_begin(to, "criteria", '[');
    for (size_t i = 0; i < verdict.n; i++)
        level_criterion_to_json(&verdict.at[i], to);
    buf_putc(to, ']');
    return OK;
}

enum err level_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                    bool *known, struct why *why)
{
    struct level_change changes[TENURE_CHANGES];
    size_t n = allowlist_feed_history(w->reporter->feed, ask->id, changes);
    int level = n ? changes[0].level : 0;
    *known = n > 0;
    buf_putc(to, '{');
    json_put_text(to, "repo", ask->id);
    json_put_text(to, "level", level ? str_of(level_name(level)) : STR_NONE);
    json_put_time(to, "level_since", level ? changes[0].since_ms : 0);
    enum err err = criteria_put(w, ask->id, level, clock_wall_ms(), to, why);
    history_put(changes, n, to);
    buf_putc(to, '}');
    return err;
}
