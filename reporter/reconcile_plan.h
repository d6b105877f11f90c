/* What reconcile does about a commit and a downstream: which check runs there should be, and the
 * ordered list of actions that makes GitHub equal to that (check-runs.md). It follows from what is
 * wanted and what GitHub has, so it may be worked out at any time, in any order, and as often as
 * one likes. PURE. reconcile_pass.c carries the list out. */
#ifndef CRCR_REPORTER_RECONCILE_PLAN_H
#define CRCR_REPORTER_RECONCILE_PLAN_H

#include "../common/model/budget.h"
#include "../common/view/comments.h"
#include "oncall.h"
#include "wanted_check.h"

/* ---- which check runs ------------------------------------------------------------------------ */

/* One pull request that the commit belongs to. */
struct commit_pr {
    int64_t pr;
    const char *labels; /* one a line */
    bool past;          /* it went on to another head (pr_now_is_past) */
};

/* What the view and the allowlist say now; everything is borrowed. */
struct commit_view {
    int level;                   /* tier in force now; 0: no longer listed */
    struct str device;           /* of L3 */
    bool demoted;                /* L3 whose figures fell: no new check runs until they recover */
    const struct commit_pr *prs; /* two pull requests may have the same head */
    size_t n_prs;
    const struct result_record *jobs;
    size_t n_jobs;
};

/* Whether one of the lines, which may be NULL, is ciflow/crcr/<device>, in any case. */
bool labels_have_device(const char *lines, struct str device);
/* Whether a new check run may be started for that pull request. L4: yes. L3: when the pull request
 * carries ciflow/crcr/<device>, and the repo is not demoted. L1, L2, unlisted: no; nor on a commit
 * that the pull request has gone past. */
bool check_may_start(const struct commit_view *view, int64_t pr);
/* One wanted check run a job, in the order of the jobs. Jobs without a pull request (pushes other
 * than ciflow tags, nightly, periodic) have none. to has room for n_jobs; gives how many. Each is
 * to be cleared. */
size_t plan_job_checks(const struct commit_view *view, struct wanted_check *to);
/* At most max (workflow, job) pairs have check runs, with all their attempts: those that have one
 * at GitHub already, then those that were heard of first, then by name. The others may start none.
 * Gives how many pairs these are. */
size_t plan_limit(struct wanted_check *wanted, const struct check_sent *sent, size_t n, size_t max);

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
/* True when the pull request has gone past the commit. */
bool commit_is_past(const struct commit_view *view, int64_t pr);
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
