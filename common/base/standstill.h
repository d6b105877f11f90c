/* Whether this process stood still for so long (SIGSTOP, a frozen machine) that Kafka may have
 * given its partitions to another replica. It goes on in the middle of what it was doing, before
 * anything tells it of the loss, and what it had read by then is old. Clocks are monotonic. PURE.
 */
#ifndef CRCR_BASE_STANDSTILL_H
#define CRCR_BASE_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>

/* Less than the least time in which a partition is lost: a session (6 s), of which a part was over
 * when we stopped (a heartbeat, 1.5 s). More than what a loop that works takes to come round. */
#define STANDSTILL_MS 3000

/* All 0 at first. */
struct standstill {
    int64_t seen_ms;  /* we did not stand still then */
    int64_t ended_ms; /* of the last standstill */
};

/* We do not stand still now. To be called each time a loop comes round. */
void standstill_look(struct standstill *s, int64_t now_ms);
/* True when we have stood still since then. */
bool standstill_since(struct standstill *s, int64_t then_ms, int64_t now_ms);

#endif
