/* Of a job the newest attempt counts. This is the only C code that says which one that is; the
 * fold has the same rule in common/view/fold/attempt.lua, and one table tests both. PURE. */
#ifndef CRCR_MODEL_ATTEMPT_H
#define CRCR_MODEL_ATTEMPT_H

#include "../base/str.h"

/* Below 0: a came before b; 0: they are the same. Numbers, of any length, come before names; an
 * absent one before all. */
int attempt_compare(struct str a, struct str b);
/* As GitHub counts, up to INT32_MAX; 0: it is no such number. */
int64_t attempt_number(struct str attempt);

#endif
