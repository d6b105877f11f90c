/* One thread a daemon that finds a stall which the loop itself cannot see. It ends the daemon, so
 * that it is started again: the other roles drain, the exit code is 1.
 *
 *   a role      without a sign of life, or with lag, no progress and no reason to wait, for 90 s
 *   a partition with more to read, nothing in hand, not paused by us, and its position unchanged,
 *               for 90 s. librdkafka may ask a broker that no longer leads it (its pull request
 *               5593), or never ask again for the committed offset (its issue 5586).
 *
 * The watchdog asks for the ends of partitions with a client of its own, since a reader that is
 * stuck would not report them. While no broker answers nothing counts as a stall. */
#ifndef CRCR_DAEMON_WATCHDOG_H
#define CRCR_DAEMON_WATCHDOG_H

#include <stdint.h>

#include "../base/err.h"

struct daemon_ctx;
struct watchdog;

enum err watchdog_new(struct watchdog **ret, struct daemon_ctx *daemon, struct why *why) MUST_CHECK;
/* Looks at the daemon's roles each second, on a thread of its own, until it is freed. */
enum err watchdog_start(struct watchdog *w, struct why *why) MUST_CHECK;
/* One look at that moment (monotonic). For the thread, and for tests. */
void watchdog_look(struct watchdog *w, int64_t now_ms);
/* NULL is fine. Waits until the thread has ended, 5 s at most while a broker is asked. */
void watchdog_free(struct watchdog *w);

#endif
