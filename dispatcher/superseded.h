/* Which event of a pull request is superseded at a downstream: only the newest needs a CI run, and
 * a pull request that is pushed to often would start many. An older one is not sent
 *
 *   - when a newer one was claimed or sent (common/view/superseded.lua, as its claim is asked for);
 *   - when a newer one with the same action waits behind it in its lane (here), and it is not known
 *     to have been called: its run would report under its delivery.
 *
 * Pushes, re-runs and what is replayed --again are never superseded (task_can_be_superseded). PURE.
 */
#ifndef CRCR_DISPATCHER_SUPERSEDED_H
#define CRCR_DISPATCHER_SUPERSEDED_H

#include "sender.h"

/* True when one that supersedes t waits behind it. t was taken out of its lane. */
bool superseded_by_waiting(const struct task_in_hand *t);

#endif
