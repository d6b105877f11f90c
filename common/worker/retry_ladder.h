/* The retry ladder, and the delay topics. PURE.
 *
 *   attempt 1 ─10 s─▶ 2 ─1 m─▶ 3 ─10 m─▶ 4 ─1 h─▶ 5 ─▶ the DLQ, exhausted */
#ifndef CRCR_WORKER_RETRY_LADDER_H
#define CRCR_WORKER_RETRY_LADDER_H

#include "../base/headers.h"
#include "../model/topics.h"

/* How long to wait after that attempt (1, 2, …) failed; 0: there is no next attempt. */
int64_t retry_wait_ms(int attempt);
/* The delay topic for a record that returns to topic `to` after wait_ms: the shortest that is long
 * enough, else the longest. */
enum topic delay_topic_of(enum topic to, int64_t wait_ms);
/* The longest wait that a delay topic takes; one of 1 h takes any longer wait, too. */
int64_t delay_topic_ms(enum topic delay);
/* Adds the headers that the role delay reads: to_topic (full name), not_before_ms (wall clock) and
 * error. All are borrowed. */
void delay_headers(struct headers *headers, const char *to_topic, int64_t not_before_ms,
                   const char *error);

#endif
