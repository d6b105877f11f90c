#include "wake.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum err wake_init(struct wake *w, struct why *why)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return why_set(why, ERR_STOP, "eventfd: %s", strerror(errno));
    w->fd = fd;
    return OK;
}

void wake_clear(struct wake *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

/* A failed write means that the counter is full, so the loop is awake already. */
void wake_up(struct wake *w)
{
    int before = errno; /* a signal handler must not change it */
    uint64_t one = 1;
    ssize_t n = write(w->fd, &one, sizeof(one));
    (void)n;
    errno = before;
}

void wake_reset(struct wake *w)
{
    uint64_t count;
    ssize_t n = read(w->fd, &count, sizeof(count));
    (void)n;
}

/* A signal ends the wait early; loops look for work again anyway. */
void wake_wait(struct wake *w, int timeout_ms)
{
    struct pollfd p = { .fd = w->fd, .events = POLLIN };
    poll(&p, 1, timeout_ms);
}
