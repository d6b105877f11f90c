/* How a daemon ends. One thread waits for SIGTERM and SIGINT, which are blocked everywhere else:
 *
 *   running ──signal, stop_ask──▶ stopping (drain_ms at most) ──stop_free──▶ gone
 *                                    └──another signal, or time over──▶ _exit(1) */
#ifndef CRCR_DAEMON_STOP_H
#define CRCR_DAEMON_STOP_H

#include "../base/err.h"

struct stop;

/* Both are called from the waiting thread. */
struct stop_hooks {
    /* Once, with the signal's name or the reason given to stop_ask. */
    void (*stopping)(void *opaque, const char *reason);
    /* Last thing before _exit(1): the time is over, or a second signal came. */
    void (*given_up)(void *opaque, const char *reason);
};

/* Blocks the signals for this thread and all that it starts, ignores SIGPIPE, and starts the
 * waiting thread. hooks must live as long. */
enum err stop_new(struct stop **ret, int drain_ms, const struct stop_hooks *hooks, void *opaque,
                  struct why *why) MUST_CHECK;
/* As a signal would; reason is a literal. Any thread. */
void stop_ask(struct stop *s, const char *reason);
/* Ends the waiting thread: the drain is over. NULL is fine. */
void stop_free(struct stop *s);

#endif
