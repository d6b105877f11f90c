/* Which level each repository has had since when, from the versions of the allowlist in the order
 * in which they came into force. PURE. */
#ifndef CRCR_MODEL_TENURE_H
#define CRCR_MODEL_TENURE_H

#include "allowlist.h"

struct tenure;

/* From since_ms on the repository was at that level; 0: it was not listed. */
struct level_change {
    int level;
    int64_t since_ms; /* wall clock */
};
#define TENURE_CHANGES 20 /* of a repository that are kept: the newest */

struct tenure *tenure_new(void);
void tenure_free(struct tenure *t);
/* The next version, in force from at_ms on. The list is read, not kept. */
void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms);
/* Since when the repo is at the level that the last version gives it; -1 when it is not listed. */
int64_t tenure_since_ms(const struct tenure *t, struct str repo);
/* How long the repo has been at that level until now_ms, all its stays together; -1: never. */
int64_t tenure_total_ms(const struct tenure *t, struct str repo, int level, int64_t now_ms);
/* The changes of a repo, newest first. Gives how many there are in to. */
size_t tenure_history(const struct tenure *t, struct str repo,
                      struct level_change to[TENURE_CHANGES]);

#endif
