/* The downstreams of a record, as its headers name them: comma-separated, mostly one, up to 16 in
 * dispatch.l1…l4, and in what comes of these in delay.* and dlq. PURE. */
#ifndef CRCR_CTL_REPOS_H
#define CRCR_CTL_REPOS_H

#include "../../common/base/buf.h"

/* Whether repo is one of them, in any case. An empty repo always is. */
bool repos_have(struct str repos, struct str repo);
/* For a column: "org/a", or "org/a +3" for several; "" for none. */
void repos_short(struct str repos, char *to, size_t size);
/* For the end of such a line, if there are several: "; for org/a, org/b". */
void repos_put_rest(struct buf *to, struct str repos);
/* All of them: "org/a, org/b". */
void repos_put(struct buf *to, struct str repos);
/* Two members of an object: repos, a list; and repo, null unless there is exactly one. */
void repos_json(struct buf *to, struct str repos);

#endif
