/* Whether a commit exists upstream (crcr:commit:<sha>): what nightly and periodic runs report names
 * a commit that no webhook vouches for. */
#ifndef CRCR_VIEW_COMMITS_H
#define CRCR_VIEW_COMMITS_H

#include "jobs.h"

enum commit_seen {
    COMMIT_UNKNOWN,
    COMMIT_ASKED, /* a repository's rate paid for the question; no answer yet */
    COMMIT_ABSENT,
    COMMIT_EXISTS,
};

enum err commit_seen_get(struct redis *r, struct str sha, enum commit_seen *ret,
                         struct why *why) MUST_CHECK;
/* seen: not COMMIT_UNKNOWN. */
enum err commit_seen_put(struct redis *r, struct str sha, enum commit_seen seen,
                         const struct view_times *times, struct why *why) MUST_CHECK;

#endif
