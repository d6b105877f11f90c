/* A change of the allowlist file: repositories moved to another level, as a unified diff for `git
 * apply` or `patch -p1`. Lines are moved where each repository stands on a line of its own, so that
 * comments stay; where that does not give the wanted list (flow style, say) the whole file is
 * written anew. Either way the result is parsed and compared before it is given. PURE. */
#ifndef CRCR_MODEL_ALLOWLIST_PATCH_H
#define CRCR_MODEL_ALLOWLIST_PATCH_H

#include "../base/buf.h"
#include "allowlist.h"

/* Borrowed. */
struct allowlist_move {
    struct str repo;   /* listed */
    int level;         /* where to: 1…4 */
    struct str device; /* level 3 only */
};

/* text: the file in force. path: as in the repository (".github/allowlist.yml"). Appends nothing
 * without moves. *rewritten: the file was written anew, and its comments are lost. ERR_REFUSE: text
 * is no allowlist, or does not list a repo that is to be moved. */
enum err allowlist_patch(struct str text, const char *path, const struct allowlist_move *moves,
                         size_t n, struct buf *to, bool *rewritten, struct why *why) MUST_CHECK;

#endif
