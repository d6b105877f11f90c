/* When what was put off comes back: one by one, 20 a second for each downstream however much waits
 * for it. If it must wait again, each is three records; all of them at once, every 30 s, would be
 * thousands a second. But within the hour: more than 72,000 come back faster. PURE. */
#ifndef CRCR_DISPATCHER_PACE_H
#define CRCR_DISPATCHER_PACE_H

#include "../common/base/str.h"

#define PACE_MS      50
#define PACE_MOST_MS 3600000

struct pace;

struct pace *pace_new(void);
/* NULL is fine. */
void pace_free(struct pace *p);
/* The moment at which one task of that repo may ask again: not before from_ms, and behind all those
 * of that repo that were told one; at most PACE_MOST_MS from now_ms. repo is copied. Monotonic. */
int64_t pace_next(struct pace *p, struct str repo, int64_t from_ms, int64_t now_ms);

#endif
