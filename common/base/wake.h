/* An eventfd that other threads write to in order to wake a loop that waits in poll(). */
#ifndef CRCR_BASE_WAKE_H
#define CRCR_BASE_WAKE_H

#include "err.h"

struct wake {
    int fd; /* eventfd, non-blocking; poll it for reading */
};

enum err wake_init(struct wake *w, struct why *why) MUST_CHECK;
void wake_clear(struct wake *w);
/* From any thread and from a signal handler. */
void wake_up(struct wake *w);
/* Forgets the wake-ups so far; call before looking for work, not after. */
void wake_reset(struct wake *w);
/* Waits until woken or timeout_ms have passed (-1: for ever). */
void wake_wait(struct wake *w, int timeout_ms);

#endif
