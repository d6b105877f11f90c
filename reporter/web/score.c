#include "score.h"

#include "../aggregate.h"

static void score_add(struct jobs_score *to, const struct result_record *job)
{
    const char *conclusion = job_conclusion(job);
    int64_t began_ms = job->dispatched_ms > 0 ? job->dispatched_ms : job_first_ms(job);
    to->jobs++;
    to->running += !conclusion;
    to->failed += conclusion && conclusion_is_bad(conclusion);
    if (!to->worst || job_rank(job) < job_rank(to->worst))
        to->worst = job;
    if (to->began_ms == 0 || began_ms < to->began_ms)
        to->began_ms = began_ms;
}

struct jobs_score score_of_newest_run(const struct result_record *jobs, size_t n)
{
    struct jobs_score score = { .worst = NULL };
    const char *run = NULL;
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].replaced || !jobs[i].run_id)
            continue;
        run = run ? run : jobs[i].run_id;
        if (str_is(str_of(jobs[i].run_id), run))
            score_add(&score, &jobs[i]);
    }
    return score;
}

struct jobs_score score_of_downstream(const struct result_record *jobs, size_t n, struct str repo)
{
    struct jobs_score score = { .worst = NULL };
    for (size_t i = 0; i < n; i++)
        if (!jobs[i].replaced && (!repo.ptr || str_eq_nocase(str_of(jobs[i].repo), repo)))
            score_add(&score, &jobs[i]);
    return score;
}

bool score_blocks(const struct jobs_score *score, const struct dispatch_view *d, int64_t level)
{
    if (level < 4 ||
        (!score->jobs && (!d || dispatch_was_dropped(d) || str_is(str_of(d->action), "closed"))))
        return false;
    return score->failed > 0 || score->running > 0 || score->jobs == 0;
}
