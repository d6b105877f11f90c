/* What reconcile does about a commit and a downstream: the ordered list of actions that makes
 * GitHub equal to what is wanted (check-runs.md). It follows from the wanted check runs
 * (which_checks.h) and what GitHub has, so it may be worked out at any time, in any order, and as
 * often as one likes. PURE. reconcile_pass.c carries the list out. */
#ifndef CRCR_REPORTER_RECONCILE_PLAN_H
#define CRCR_REPORTER_RECONCILE_PLAN_H

#include "../common/model/budget.h"
#include "../common/view/comments.h"
#include "oncall.h"
#include "which_checks.h"

/* ---- what is done about each ----------------------------------------------------------------- */

enum action_kind {
    ACTION_NONE,
    ACTION_LOOK_AGAIN, /* note when the aggregate is to be looked at again */
    ACTION_CHECK_FIND, /* look at GitHub for a check run that may be there; plan_check again */
    ACTION_CHECK_CREATE,
    ACTION_CHECK_UPDATE,
    ACTION_COMMENT,      /* take the lease, read what was sent last; then plan_comment */
    ACTION_COMMENT_FIND, /* look at GitHub for our comment; plan_comment again */
    ACTION_COMMENT_CREATE,
    ACTION_COMMENT_EDIT,
    ACTION_COMMIT_ASK, /* whether the upstream has a commit that a self-report names */
    ACTION_KINDS
};

/* What GitHub has of one check run, as far as we know. */
struct check_has {
    struct check_sent sent;
    bool looked;     /* GitHub was searched: without an id there is none */
    int64_t paid_ms; /* when the search paid for the creation as well; monotonic clock; 0: not */
};

/* The next action about one check run; again after GitHub was searched. */
enum action_kind plan_check(const struct wanted_check *wanted, const struct check_has *has);
/* The next action about the comment of a pull request. digest: of the text that belongs to the
 * word. */
enum action_kind plan_comment(enum oncall_word word, const char *digest,
                              const struct comment_sent *has);
/* What the call is for, when GitHub's budget is scarce: the first sign of an aggregate and its end
 * go first, then what completed. A job in progress may complete meanwhile, which then costs one
 * call instead of two. What is on a commit that its pull request has gone past goes last. An
 * aggregate that has completed and says something else now is no better than a job: else a
 * downstream could take everybody's calls by turning its own to and fro. */
enum budget_class plan_class(const struct wanted_check *wanted, const struct check_sent *sent,
                             enum action_kind kind);

/* ---- the list -------------------------------------------------------------------------------- */

struct action {
    enum action_kind kind;
    size_t check; /* ACTION_CHECK_*: index in wanted */
    int64_t pr;   /* ACTION_COMMENT* */
};

struct plan_view {
    const struct wanted_check *wanted; /* the aggregate's, where there is one, is the last */
    const struct check_sent *sent;     /* of each */
    size_t n;
    bool comments; /* CRCR_ONCALL_COMMENTS */
    bool look;     /* there is a time to look again */
};

/* The actions in their order: the time to look again, check runs (enum turn), comments. to has room
 * for plan_most_actions(n); gives how many. */
size_t plan_actions(const struct plan_view *view, struct action *to);
size_t plan_most_actions(size_t n);
/* True when the job has a check run, or will: then on-call comments may be about it. */
bool plan_has_check(const struct wanted_check *wanted, const struct check_sent *sent);

#endif
