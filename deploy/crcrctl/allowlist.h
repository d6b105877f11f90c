/* What the topic allowlist holds: the version in force, who is demoted, and since when each
 * repository has been at its level. */
#ifndef CRCR_CTL_ALLOWLIST_H
#define CRCR_CTL_ALLOWLIST_H

#include "../../common/model/allowlist.h"
#include "../../common/model/demotions.h"
#include "ctl.h"

/* Since when each repository has been at its level, from the versions in the order in which they
 * came into force. Leaving the level, or the list, starts the time anew. PURE. */
struct tenure;

struct tenure *tenure_new(void);
void tenure_free(struct tenure *t);
/* The next version, in force from at_ms on. The list is read, not kept. */
void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms);
/* Since when the repo is at the level that the last version gives it; -1 when it is not listed. */
int64_t tenure_since_ms(const struct tenure *t, struct str repo);

struct allowlist_read {
    struct tenure *tenure;
    struct allowlist *list; /* in force; NULL: none yet */
    char *text, *source, sha[65];
    int64_t fetched_ms;
    struct demotions *demotions; /* in force; NULL: none */
    size_t unreadable;           /* records; what was in force stays, as in the daemons */
};

/* From the first version on. *ret is to be cleared, also after an error. */
enum err allowlist_read(const struct ctl *ctl, struct allowlist_read *ret,
                        struct why *why) MUST_CHECK;
void allowlist_read_clear(struct allowlist_read *r);

#endif
