/* "Re-run" at GitHub: whether the check is one of ours, and what becomes of it. PURE. */
#ifndef CRCR_DISPATCHER_RERUN_H
#define CRCR_DISPATCHER_RERUN_H

#include "route.h"

#define RERUN_LEVEL 3 /* and above */

/* A check run that somebody wants again: named by a webhook, or found in a check suite. Borrowed.
 */
struct check_asked {
    int64_t app_id; /* of the App that made it */
    struct str name, external_id;
};
/* NULL: *ret says what the check becomes, a rerun_failed of its run, or an expand of an aggregate
 * check, or why it is skipped. Otherwise why no downstream is concerned at all. in->facts is not
 * used. */
const char *rerun_check(const struct route_input *in, const struct check_asked *check,
                        struct route *ret);
/* A whole check suite becomes an expand of the upstream. */
void rerun_suite(const struct route_input *in, struct routes *ret);
/* An expand of a whole check suite is the upstream's; any other is a downstream's. */
bool rerun_is_suite(const struct task *task);
/* The external_id of an aggregate check, "d:<delivery>:<pr>". */
bool rerun_aggregate_id(struct str external_id, struct str *delivery, int64_t *pr);

#endif
