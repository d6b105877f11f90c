/* What the upstream's webhooks say of a pull request (crcr:labels:<pr>): its ciflow/crcr/<device>
 * labels, head commit, title and author. The newest updated_at wins. Which pull requests there are
 * is in crcr:prs, by their newest event. */
#ifndef CRCR_VIEW_LABELS_H
#define CRCR_VIEW_LABELS_H

#include "indexes.h"

/* What one webhook says. labels: one a line. received_ms decides between two of the same
 * updated_ms. */
struct pr_fact {
    int64_t pr, updated_ms, received_ms;
    struct str labels, head_sha, title, author;
};
/* fact is borrowed for the call. */
enum err labels_fold_queue(struct redis *r, const struct pr_fact *fact,
                           const struct view_times *times, struct why *why) MUST_CHECK;
enum err labels_fold_collect(struct redis *r, struct why *why) MUST_CHECK;

/* The labels, one a line, appended to to; nothing when none are known. */
enum err labels_get(struct redis *r, int64_t pr, struct buf *to, struct why *why) MUST_CHECK;
/* The head commit of a pull request; "" when it is not known. */
enum err pr_head_get(struct redis *r, int64_t pr, char ret[SHA_MAX + 1],
                     struct why *why) MUST_CHECK;

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
