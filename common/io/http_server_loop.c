/* The threads that run microhttpd.
 *
 * microhttpd has threads of its own, but 0.9.75 takes at most 128 events at once from epoll and,
 * when there were exactly that many, waits for more before it looks at any: with 128 connections
 * that all wait for an answer everything stands still. MHD_run never waits, so the waiting is done
 * here. */
#include <microhttpd.h>
#include <poll.h>
#include <string.h>

#include "http_server_inner.h"

enum { LOOK_MS = 1000 };

/* How long microhttpd can be left alone when nothing happens. */
static int patience_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms;
    return MHD_get_timeout(daemon, &ms) == MHD_YES && ms < LOOK_MS ? (int)ms : LOOK_MS;
}

static void *loop_main(void *arg)
{
    struct http_loop *l = arg;
    struct http_server *s = l->server;
    bool quiesced = false;
    struct pollfd fds[] = {
        { .fd = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
          .events = POLLIN },
        { .fd = l->wake.fd, .events = POLLIN },
    };
    while (!atomic_load(&s->loops_must_end)) {
        poll(fds, 2, patience_ms(l->daemon));
        if (fds[1].revents) {
            wake_reset(&l->wake);
            atomic_store(&l->woken, false);
        }
        if (!quiesced && atomic_load(&s->quiesced)) {
            MHD_quiesce_daemon(l->daemon);
            quiesced = true;
            atomic_fetch_add(&s->n_quiesced, 1);
        }
        MHD_run(l->daemon);
    }
    return NULL;
}

static enum err loop_start(struct http_server *s, struct http_loop *l,
                           const struct http_server_options *options, struct why *why)
{
    enum err err = wake_init(&l->wake, why);
    if (err)
        return err;
    l->server = s;
    l->daemon = http_server_daemon_new(l, options);
    if (!l->daemon)
        return why_set(why, ERR_STOP, "microhttpd did not start on %s", options->listen);
    int failed = pthread_create(&l->thread, NULL, loop_main, l);
    if (failed)
        return why_set(why, ERR_STOP, "pthread_create: %s", strerror(failed));
    l->runs = true;
    return OK;
}

enum err http_server_loops_start(struct http_server *s, const struct http_server_options *options,
                                 struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; i < s->n_loops && !err; i++)
        err = loop_start(s, &s->loops[i], options, why);
    return err;
}

void http_loop_wake(struct http_loop *l)
{
    if (!atomic_exchange(&l->woken, true))
        wake_up(&l->wake);
}

void http_server_loops_wake(struct http_server *s)
{
    for (struct http_loop *l = s->loops; l < s->loops + s->n_loops; l++)
        if (l->runs)
            http_loop_wake(l);
}

/* MHD_stop_daemon would close the listening socket, which is shared, so each is quiesced before. */
static void loop_stop(struct http_loop *l)
{
    if (l->runs)
        pthread_join(l->thread, NULL);
    if (l->daemon) {
        MHD_quiesce_daemon(l->daemon);
        MHD_stop_daemon(l->daemon);
    }
    if (l->wake.fd >= 0)
        wake_clear(&l->wake);
}

void http_server_loops_stop(struct http_server *s)
{
    atomic_store(&s->loops_must_end, true);
    http_server_loops_wake(s);
    for (struct http_loop *l = s->loops; l < s->loops + s->n_loops; l++)
        loop_stop(l);
}
