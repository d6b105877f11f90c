#include "reconcile_plan.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"

/* ---- which check runs ------------------------------------------------------------------------ */

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

size_t plan_job_checks(const struct commit_view *view, struct wanted_check *to)
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

size_t plan_limit(struct wanted_check *wanted, const struct check_sent *sent, size_t n, size_t max)
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

/* ---- what is done about each ----------------------------------------------------------------- */

enum action_kind plan_check(const struct wanted_check *wanted, const struct check_has *has)
{
    /* Wanted is a check run that is only kept up to date if there is one (KEEP), or that may be
     * started as well. An aggregate may be followed by another of its name; GitHub never takes one
     * back from completed. */
    enum { KEEP_OPEN, KEEP_COMPLETED, OPEN, COMPLETED, AGGREGATE_OPEN, WANTED };
    enum { SAME, UNKNOWN, ABSENT, HAS_OPEN, HAS_COMPLETED, FOUND_COMPLETED, HAS };
    enum { SKIP = ACTION_NONE };
    enum { FIND = ACTION_CHECK_FIND, MAKE = ACTION_CHECK_CREATE, EDIT = ACTION_CHECK_UPDATE };
    static const unsigned char table[HAS][WANTED] = {
        { SKIP, SKIP, SKIP, SKIP, SKIP }, /* SAME: it says so, or GitHub refused just that */
        { SKIP, SKIP, FIND, FIND, FIND }, /* UNKNOWN */
        { SKIP, SKIP, MAKE, MAKE, MAKE }, /* ABSENT: it was searched for, or somebody deleted it */
        { EDIT, EDIT, EDIT, EDIT, EDIT }, /* HAS_OPEN */
        { SKIP, EDIT, SKIP, EDIT, FIND }, /* HAS_COMPLETED, as far as is known here */
        { SKIP, EDIT, SKIP, EDIT, MAKE }, /* FOUND_COMPLETED, the newest one at GitHub */
    };
    const struct check_sent *sent = &has->sent;
    int column = !wanted->may_start  ? (wanted->completed ? KEEP_COMPLETED : KEEP_OPEN)
                 : wanted->completed ? COMPLETED
                 : wanted->aggregate ? AGGREGATE_OPEN
                                     : OPEN;
    int row = str_is(str_of(sent->digest), wanted->digest) ? SAME
              : !sent->id                                  ? (has->looked ? ABSENT : UNKNOWN)
              : !sent->completed                           ? HAS_OPEN
                                 : (has->looked ? FOUND_COMPLETED : HAS_COMPLETED);
    return (enum action_kind)table[row][column];
}

enum action_kind plan_comment(enum oncall_word word, const char *digest,
                              const struct comment_sent *has)
{
    enum { UNKNOWN, ABSENT, SAME, OTHER, HAS };
    enum { SKIP = ACTION_NONE };
    enum { FIND = ACTION_COMMENT_FIND, MAKE = ACTION_COMMENT_CREATE, EDIT = ACTION_COMMENT_EDIT };
    static const unsigned char table[][HAS] = {
        { SKIP, SKIP, SKIP, SKIP }, /* ONCALL_NOTHING */
        { FIND, MAKE, SKIP, EDIT }, /* ONCALL_FAILING */
        { FIND, SKIP, SKIP, EDIT }, /* ONCALL_RESOLVED: never in a new comment */
    };
    bool same = str_is(str_of(has->digest), digest);
    if (has->refused)
        return ACTION_NONE;
    int column = !has->known ? UNKNOWN : !has->id ? ABSENT : same ? SAME : OTHER;
    return (enum action_kind)table[word][column];
}

enum budget_class plan_class(const struct wanted_check *wanted, const struct check_sent *sent,
                             enum action_kind kind)
{
    bool ends = wanted->completed && !sent->completed;
    if (wanted->past)
        return BUDGET_REST;
    if (wanted->aggregate && (ends || kind != ACTION_CHECK_UPDATE))
        return BUDGET_AGGREGATE;
    return wanted->completed ? BUDGET_URGENT : BUDGET_REST;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* The turn of a check run: what people wait for goes first, when not all can be sent at once. */
enum turn {
    TURN_FIRST_SIGN, /* of an aggregate, which may block a merge */
    TURN_COMPLETED,  /* jobs that completed */
    TURN_OPEN,       /* jobs in progress */
    TURN_AGGREGATE,  /* that GitHub has already */
    TURNS
};

static enum turn turn_of(const struct wanted_check *wanted, const struct check_sent *sent)
{
    if (wanted->aggregate)
        return sent->id ? TURN_AGGREGATE : TURN_FIRST_SIGN;
    return wanted->completed ? TURN_COMPLETED : TURN_OPEN;
}

bool plan_has_check(const struct wanted_check *wanted, const struct check_sent *sent)
{
    return wanted->job && (wanted->may_start || sent->id);
}

size_t plan_most_actions(size_t n)
{
    return 2 * n + 1; /* every check run and a comment with it, and the time to look again */
}

/* One a pull request. */
static size_t add_comments(const struct plan_view *view, struct action *to)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++) {
        bool said = !plan_has_check(&view->wanted[i], &view->sent[i]);
        for (size_t k = 0; k < n && !said; k++)
            said = to[k].pr == view->wanted[i].job->pr_number;
        if (!said)
            to[n++] =
                (struct action){ .kind = ACTION_COMMENT, .pr = view->wanted[i].job->pr_number };
    }
    return n;
}

size_t plan_actions(const struct plan_view *view, struct action *to)
{
    size_t n = 0;
    /* Noted before anything is sent: a crash leaves a look too many, never one too few. */
    if (view->look || (view->n > 0 && view->wanted[view->n - 1].aggregate))
        to[n++] = (struct action){ .kind = ACTION_LOOK_AGAIN };
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < view->n; i++) {
            const struct check_has has = { .sent = view->sent[i] };
            enum action_kind kind = plan_check(&view->wanted[i], &has);
            if (kind != ACTION_NONE && (int)turn_of(&view->wanted[i], &view->sent[i]) == turn)
                to[n++] = (struct action){ .kind = kind, .check = i };
        }
    return view->comments ? n + add_comments(view, to + n) : n;
}
