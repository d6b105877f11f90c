/* What the upstream's webhooks say of a pull request (crcr:labels:<pr>): its ciflow/crcr/<device>
 * labels, head commit, title and author. The newest updated_at wins. Which pull requests there are
 * is in crcr:prs, by their newest event. */
#ifndef CRCR_VIEW_PULL_REQUESTS_H
#define CRCR_VIEW_PULL_REQUESTS_H

#include "../model/demotions.h"
#include "allowlist_feed.h"
#include "indexes.h"

/* What one webhook says. offset, of its record, decides between two of the same updated_ms. */
struct pr_fact {
    int64_t pr, updated_ms, received_ms, offset;
    char *labels; /* one a line */
    char *head_sha, *title, *author;
    char *demotes; /* the repository that it demotes (model/demotions.h), or NULL */
};
/* Frees the text; an empty fact is fine. */
void pr_fact_clear(struct pr_fact *fact);
/* fact is borrowed for the call. Collect with view_fold_collect. */
enum err pr_fold_queue(struct redis *r, const struct pr_fact *fact, const struct view_times *times,
                       struct why *why) MUST_CHECK;

/* What the newest webhook said. Of a pull request that is not known all is empty. */
struct pr_now {
    char *labels; /* one a line */
    char head_sha[SHA_MAX + 1];
    int64_t received_ms; /* of that webhook; 0: not known, folded by an older program */
};
void pr_now_clear(struct pr_now *now);
/* *ret is to be cleared, also after a failure. */
enum err pr_now_get(struct redis *r, int64_t pr, struct pr_now *ret, struct why *why) MUST_CHECK;
/* True when the pull request went on to another head after that commit was heard of last, at
 * heard_ms (wall clock; 0: not known). Nobody reads the check runs of such a commit. */
bool pr_now_is_past(const struct pr_now *now, struct str sha, int64_t heard_ms);

/* The repositories that open pull requests demote; the reason of each names the pull request, and
 * since_ms is 0. *ret is the caller's. One whose last event is older than the topic events reaches
 * back is not known after a rebuild, until its next event. */
enum err prs_demoting_get(struct redis *r, struct demotions **ret, struct why *why) MUST_CHECK;
/* Why the repo, at L3, gets no new check runs now: its figures, or one of prs; NULL: it does. */
const struct demotion *demotion_in_force(const struct allowlist_version *version,
                                         const struct demotions *prs, struct str repo);

/* For people; "" when it is not known. */
struct pr_text {
    char title[PR_TITLE_MAX + 1], author[PR_AUTHOR_MAX + 1], head_sha[SHA_MAX + 1];
};
#define PRS_MAX 1000 /* that crcr:prs keeps */
/* Pull requests by their newest event, newest first, at most limit; the names are their numbers. */
enum err prs_by_activity(struct redis *r, size_t limit, struct view_index *ret,
                         struct why *why) MUST_CHECK;
/* Of each pull request; ret has prs->n places. */
enum err pr_texts_get(struct redis *r, const struct view_index *prs, struct pr_text *ret,
                      struct why *why) MUST_CHECK;

#endif
