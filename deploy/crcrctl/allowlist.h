/* What the topic allowlist holds: the version in force, who is demoted, and since when each
 * repository has been at its level. */
#ifndef CRCR_CTL_ALLOWLIST_H
#define CRCR_CTL_ALLOWLIST_H

#include "../../common/model/allowlist.h"
#include "../../common/model/demotions.h"
#include "../../common/model/tenure.h"
#include "ctl.h"

struct allowlist_read {
    struct tenure *tenure;
    struct allowlist *list; /* in force; NULL: none yet */
    char *text, *source, sha[65];
    int64_t fetched_ms;
    struct demotions *demotions; /* in force; NULL: none */
    size_t unreadable;           /* records; the version before them stays, as in the daemons */
};

/* Reads the topic from its beginning. *ret must be cleared, also after an error. */
enum err allowlist_read(const struct ctl *ctl, struct allowlist_read *ret,
                        struct why *why) MUST_CHECK;
void allowlist_read_clear(struct allowlist_read *r);

#endif
