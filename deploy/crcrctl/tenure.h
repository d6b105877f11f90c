/* Since when each repository has been at its level, from the versions of the allowlist in the order
 * in which they came into force. Leaving the level, or the list, starts the time anew. PURE. */
#ifndef CRCR_CTL_TENURE_H
#define CRCR_CTL_TENURE_H

#include "../../common/model/allowlist.h"

struct tenure;

struct tenure *tenure_new(void);
void tenure_free(struct tenure *t);
/* The next version, in force from at_ms on. The list is read, not kept. */
void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms);
/* Since when the repo is at the level that the last version gives it; -1 when it is not listed. */
int64_t tenure_since_ms(const struct tenure *t, struct str repo);

#endif
