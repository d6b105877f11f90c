#include "check_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/view/checks.h"
#include "../../common/view/runs.h"
#include "../aggregate.h"
#include "../check_text.h"

/* What was last sent of it: the one that is open, else the one that is there. */
static enum err sent_get(struct redis *r, const struct dispatch_view *d, struct check_sent *ret,
                         struct why *why)
{
    struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
    char name[REPO_MAX + 8];
    snprintf(name, sizeof(name), "crcr/%s", d->repo);
    *ret = (struct check_sent){ .id = 0 };
    enum err err = checks_sent_list(r, str_of(d->head_sha), str_of(name), &list, why);
    for (size_t i = 0; i < list.n; i++)
        if (!ret->id || (list.at[i].sent.id && !list.at[i].sent.completed))
            *ret = list.at[i].sent;
    return err;
}

/* The jobs of one back end, for aggregate_work_out, which looks at no repository; borrowed. */
static struct result_record *jobs_of(const struct api_delivery *delivery, const char *repo,
                                     size_t *n)
{
    struct result_record *jobs = mem_alloc(delivery->n_jobs + 1, sizeof(*jobs));
    *n = 0;
    for (size_t i = 0; i < delivery->n_jobs; i++)
        if (str_eq_nocase(str_of(delivery->jobs[i].repo), str_of(repo)))
            jobs[(*n)++] = delivery->jobs[i];
    return jobs;
}

/* Why there is none. */
static void absent(const struct web_view *w, const struct dispatch_view *d,
                   const struct aggregate *a, const struct check_sent *sent,
                   const struct pr_now *now, struct check_state *ret)
{
    ret->status = "absent";
    ret->until_ms = pipeline_budget_until(w->pipeline);
    ret->absent = !a->started                                                ? "not_dispatched"
                  : *sent->digest                                            ? "refused"
                  : pr_now_is_past(now, str_of(d->head_sha), d->received_ms) ? "newer_commit"
                  : ret->until_ms                                            ? "budget"
                                                                             : "not_yet";
    if (strcmp(ret->absent, "budget") != 0)
        ret->until_ms = 0;
    /* Nobody waits for the check run of a commit that is not the head. */
    ret->blocks = strcmp(ret->absent, "newer_commit") != 0;
}

static void work_out(const struct web_view *w, const struct api_delivery *delivery,
                     const struct dispatch_view *d, const struct check_sent *sent,
                     const struct run_answers *answers, const struct pr_now *now,
                     struct check_state *ret)
{
    size_t n;
    struct result_record *jobs = jobs_of(delivery, d->repo, &n);
    const struct aggregate_view view = { .dispatch = d,
                                         .required = true,
                                         .jobs = jobs,
                                         .n_jobs = n,
                                         .more_jobs = delivery->more_jobs,
                                         .answers = answers,
                                         .now_ms = clock_wall_ms(),
                                         .silent_ms = w->reporter->times.overdue_ms,
                                         .quiet_ms = w->reporter->quiet_ms,
                                         .forgive_known = w->reporter->known_neutral };
    struct aggregate a;
    aggregate_work_out(&view, &a);
    ret->id = sent->id;
    if (!sent->id) {
        absent(w, d, &a, sent, now, ret);
    } else {
        bool ended = sent->completed && a.conclusion;
        ret->status = ended ? "completed" : a.conclusion ? "in_progress" : a.status;
        ret->conclusion = ended ? a.conclusion : NULL;
        ret->blocks = !ended || conclusion_is_bad(a.conclusion);
        ret->title = aggregate_title(&a, &view);
    }
    aggregate_clear(&a);
    free(jobs);
}

/* Of L4 alone, and of what was L4 when its check run was made. The check run of a commit is about
 * its newest delivery: under an older one it says what that one says, not more. */
static enum err state_get(const struct web_view *w, const struct api_delivery *delivery,
                          const struct dispatch_view *d, struct check_state *ret, struct why *why)
{
    struct run_answers CLEANUP(run_answers_clear) answers = { NULL, 0 };
    struct pr_now CLEANUP(pr_now_clear) now = { .labels = NULL };
    struct check_sent sent;
    struct dispatch_view head;
    bool found = false;
    if (d->level < 3 || !*d->head_sha)
        return OK;
    enum err err = sent_get(w->redis, d, &sent, why);
    if (err || (d->level < 4 && !sent.id))
        return err;
    err = dispatch_of_head(w->redis, str_of(d->head_sha), str_of(d->repo), &found, &head, why);
    if (err || !found)
        return err;
    ret->other = strcmp(head.delivery, d->delivery) != 0;
    if (!err)
        err = run_answers_get(w->redis, str_of(d->head_sha), str_of(d->repo), &answers, why);
    if (!err)
        err = pr_now_get(w->redis, d->pr, &now, why);
    if (!err && ret->other) {
        ret->id = sent.id;
        ret->status = !sent.id ? "absent" : sent.completed ? "completed" : "in_progress";
    } else if (!err) {
        work_out(w, delivery, d, &sent, &answers, &now, ret);
    }
    return err;
}

enum err check_states_get(const struct web_view *w, const struct api_delivery *delivery,
                          struct check_state **ret, struct why *why)
{
    struct check_state *states = mem_alloc(delivery->n_dispatches + 1, sizeof(*states));
    enum err err = OK;
    for (size_t i = 0; !err && i < delivery->n_dispatches; i++)
        err = state_get(w, delivery, &delivery->dispatches[i], &states[i], why);
    *ret = states;
    return err;
}

void check_states_free(struct check_state *states, size_t n)
{
    for (size_t i = 0; states && i < n; i++)
        free(states[i].title);
    free(states);
}
