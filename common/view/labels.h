/* The ciflow/crcr/<device> labels of a pull request and its head commit in the view
 * (crcr:labels:<pr>), folded from upstream webhooks: the newest updated_at wins. */
#ifndef CRCR_VIEW_LABELS_H
#define CRCR_VIEW_LABELS_H

#include "jobs.h"

/* labels: one a line. received_ms decides between two of the same updated_ms. */
enum err labels_fold_queue(struct redis *r, int64_t pr, int64_t updated_ms, int64_t received_ms,
                           struct str labels, struct str head_sha, const struct view_times *times,
                           struct why *why) MUST_CHECK;
enum err labels_fold_collect(struct redis *r, struct why *why) MUST_CHECK;

/* The labels, one a line, appended to to; nothing when none are known. */
enum err labels_get(struct redis *r, int64_t pr, struct buf *to, struct why *why) MUST_CHECK;
/* The head commit of a pull request; "" when it is not known. */
enum err pr_head_get(struct redis *r, int64_t pr, char ret[SHA_MAX + 1],
                     struct why *why) MUST_CHECK;

#endif
