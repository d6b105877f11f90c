#include "which_checks.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"

bool labels_have_device(const char *lines, struct str device)
{
    struct str rest = str_of(lines), line, found;
    while (str_split(&rest, '\n', &line))
        if (ciflow_label_device(line, &found) && str_eq_nocase(found, device))
            return true;
    return false;
}

static const struct commit_pr *commit_pr_find(const struct commit_view *view, int64_t pr)
{
    for (size_t i = 0; i < view->n_prs; i++)
        if (view->prs[i].pr == pr)
            return &view->prs[i];
    return NULL;
}

bool commit_is_past(const struct commit_view *view, int64_t pr)
{
    const struct commit_pr *found = commit_pr_find(view, pr);
    return found && found->past;
}

bool check_may_start(const struct commit_view *view, int64_t pr)
{
    const struct commit_pr *found = commit_pr_find(view, pr);
    if (found && found->past)
        return false;
    if (view->level != 3 || view->demoted)
        return view->level == 4;
    return found && labels_have_device(found->labels, view->device);
}

size_t which_checks_list(const struct commit_view *view, struct wanted_check *to)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct result_record *job = &view->jobs[i];
        bool named = job->repo && job->workflow_name && job->job_name && job->run_id &&
                     job->run_attempt && job->check_run_id && job->state != JOB_NONE;
        if (named && job->pr_number > 0 && !result_record_is_self(job))
            wanted_check_of_job(job, check_may_start(view, job->pr_number),
                                commit_is_past(view, job->pr_number), &to[n++]);
    }
    return n;
}

/* All wanted check runs of one (workflow, job). */
struct pair {
    const struct result_record *job; /* one of them: has the names */
    bool exists;                     /* one of them is at GitHub */
    bool may_start;
    int64_t first_ms;
    size_t from, n; /* in the order by names */
};

static int names_cmp(const struct result_record *a, const struct result_record *b)
{
    int order = strcmp(a->workflow_name, b->workflow_name);
    return order != 0 ? order : strcmp(a->job_name, b->job_name);
}

static int by_names(const void *a, const void *b)
{
    const struct wanted_check *x = *(struct wanted_check *const *)a;
    const struct wanted_check *y = *(struct wanted_check *const *)b;
    return names_cmp(x->job, y->job);
}

static int by_claim(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->exists != y->exists)
        return x->exists ? -1 : 1;
    if (x->may_start != y->may_start)
        return x->may_start ? -1 : 1;
    if (x->first_ms != y->first_ms)
        return x->first_ms < y->first_ms ? -1 : 1;
    return names_cmp(x->job, y->job);
}

size_t which_checks_limit(struct wanted_check *wanted, const struct check_sent *sent, size_t n,
                          size_t max)
{
    struct wanted_check **order = mem_alloc(n + 1, sizeof(struct wanted_check *));
    struct pair *pairs = mem_alloc(n + 1, sizeof(*pairs));
    size_t n_pairs = 0, beyond = 0;
    for (size_t i = 0; i < n; i++)
        order[i] = &wanted[i];
    if (n > 1)
        qsort(order, n, sizeof(struct wanted_check *), by_names);
    for (size_t i = 0; i < n; i++) {
        int64_t first_ms = job_first_ms(order[i]->job);
        if (i == 0 || names_cmp(order[i - 1]->job, order[i]->job) != 0)
            pairs[n_pairs++] = (struct pair){ order[i]->job, false, false, first_ms, i, 0 };
        struct pair *pair = &pairs[n_pairs - 1];
        pair->n++;
        pair->exists = pair->exists || sent[order[i] - wanted].id;
        pair->may_start = pair->may_start || order[i]->may_start;
        if (first_ms < pair->first_ms)
            pair->first_ms = first_ms;
    }
    if (n_pairs > max)
        qsort(pairs, n_pairs, sizeof(*pairs), by_claim);
    for (size_t i = max; i < n_pairs; i++) {
        if (pairs[i].exists)
            continue;
        beyond += pairs[i].may_start;
        for (size_t k = 0; k < pairs[i].n; k++)
            order[pairs[i].from + k]->may_start = false;
    }
    free(order);
    free(pairs);
    return beyond;
}
