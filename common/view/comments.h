/* On-call comments in the view: what was last sent to a pull request about a downstream
 * (crcr:comment:*). Commits of one pull request lie in different partitions, so different replicas
 * may have something to say at the same time: a lease (LEASE_COMMENT of lease.h) lets one write
 * after the other. Both may be lost: the comment is found again at GitHub. */
#ifndef CRCR_VIEW_COMMENTS_H
#define CRCR_VIEW_COMMENTS_H

#include "jobs.h"

struct comment_sent {
    bool known;      /* false: nobody has looked at GitHub yet, or what was seen is lost */
    int64_t id;      /* at GitHub; 0: there is none */
    char digest[17]; /* of its text; "" when it is not known */
    bool refused;    /* GitHub takes no comment there: the pull request is locked, say */
};

enum err comment_sent_get(struct redis *r, int64_t pr, struct str repo, struct comment_sent *ret,
                          struct why *why) MUST_CHECK;
/* known is false: forgets. */
enum err comment_sent_put(struct redis *r, int64_t pr, struct str repo,
                          const struct comment_sent *sent, const struct view_times *times,
                          struct why *why) MUST_CHECK;

#endif
