#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/wake.h"

struct stop {
    int drain_ms;
    const struct stop_hooks *hooks;
    void *opaque;
    int signal_fd;
    struct wake wake;
    pthread_t thread;
    _Atomic(const char *) asked; /* the reason, set once */
    atomic_bool over;
};

/* Other threads still run, so nothing may be torn down under them: _exit, not exit. Kafka hands the
 * unfinished records to the next process. */
static _Noreturn void give_up(const struct stop *s, const char *reason)
{
    s->hooks->given_up(s->opaque, reason);
    _exit(1);
}

/* The name of the next signal, or NULL when there is none. */
static const char *next_signal(struct stop *s)
{
    struct signalfd_siginfo info;
    if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return NULL;
    return info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
}

static void wait_for_event(struct stop *s, int timeout_ms)
{
    struct pollfd fds[] = { { .fd = s->signal_fd, .events = POLLIN },
                            { .fd = s->wake.fd, .events = POLLIN } };
    poll(fds, 2, timeout_ms);
    wake_reset(&s->wake);
}

static void *signal_thread(void *opaque)
{
    struct stop *s = opaque;
    const char *reason = NULL;
    while (!reason && !atomic_load(&s->over)) {
        reason = next_signal(s);
        if (!reason)
            reason = atomic_load(&s->asked);
        if (!reason)
            wait_for_event(s, -1);
    }
    if (!reason) /* the daemon ended by itself */
        return NULL;
    s->hooks->stopping(s->opaque, reason);
    int64_t end_ms = clock_mono_ms() + s->drain_ms;
    while (!atomic_load(&s->over)) {
        int64_t left_ms = end_ms - clock_mono_ms();
        if (left_ms <= 0)
            give_up(s, "time over");
        wait_for_event(s, (int)left_ms);
        if (next_signal(s))
            give_up(s, "second signal");
    }
    return NULL;
}

static enum err block_signals(int *fd, struct why *why)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* a peer that hung up is an error of write, not our end */
    *fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return *fd < 0 ? why_set(why, ERR_STOP, "signalfd: %s", strerror(errno)) : OK;
}

static void destroy(struct stop *s)
{
    if (s->signal_fd >= 0)
        close(s->signal_fd);
    wake_clear(&s->wake);
    free(s);
}

enum err stop_new(struct stop **ret, int drain_ms, const struct stop_hooks *hooks, void *opaque,
                  struct why *why)
{
    struct stop *s = mem_alloc(1, sizeof(*s));
    *s = (struct stop){ .drain_ms = drain_ms,
                        .hooks = hooks,
                        .opaque = opaque,
                        .signal_fd = -1,
                        .wake = { .fd = -1 } };
    enum err err = wake_init(&s->wake, why);
    if (!err)
        err = block_signals(&s->signal_fd, why);
    if (!err && pthread_create(&s->thread, NULL, signal_thread, s) != 0)
        err = why_set(why, ERR_STOP, "no thread to wait for signals");
    if (err) {
        destroy(s);
        return err;
    }
    pthread_setname_np(s->thread, "signals");
    *ret = s;
    return OK;
}

void stop_ask(struct stop *s, const char *reason)
{
    const char *none = NULL;
    atomic_compare_exchange_strong(&s->asked, &none, reason);
    wake_up(&s->wake);
}

void stop_free(struct stop *s)
{
    if (!s)
        return;
    atomic_store(&s->over, true);
    wake_up(&s->wake);
    pthread_join(s->thread, NULL);
    destroy(s);
}
