/* What is to happen later, on the simulator's one thread. */
#ifndef CRCR_SIM_TIMERS_H
#define CRCR_SIM_TIMERS_H

#include <stdint.h>

struct timers;
typedef void timer_fn(void *opaque);

struct timers *timers_new(void);
/* Calls drop for all that is still to come. NULL is fine. */
void timers_free(struct timers *t);
/* Runs fire(opaque) in_ms milliseconds from now, or drop(opaque) if the simulator ends before;
 * either one owns opaque then. */
void timers_add(struct timers *t, int64_t in_ms, timer_fn *fire, timer_fn *drop, void *opaque);
void timers_run(struct timers *t);
/* Milliseconds until the next one, at most limit_ms. */
int timers_wait_ms(const struct timers *t, int limit_ms);

#endif
