#include "reconcile_plan.h"

#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"

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
