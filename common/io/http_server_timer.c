/* One thread for all that depends on time: answers that are overdue, clients that bring in their
 * request too slowly, sockets that linger. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/clock.h"
#include "http_server_inner.h"

enum { LOOK_MS = 1000 };

/* ---- what waits for an answer ------------------------------------------------------- */

static struct http_exchange **list_of(struct http_exchange *x)
{
    return &x->server->watched[x->route - x->server->routes];
}

bool http_server_watch(struct http_exchange *x)
{
    struct http_server *s = x->server;
    int deadline_ms = x->route->deadline_ms;
    bool sooner = false;
    x->deadline_mono_ms = deadline_ms ? clock_mono_ms() + deadline_ms : INT64_MAX;
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping;
    if (!stopping) {
        DL_APPEND(*list_of(x), x);
        x->watched = true;
        sooner = x->deadline_mono_ms < s->next_look_ms;
        if (sooner)
            s->next_look_ms = x->deadline_mono_ms;
    }
    pthread_mutex_unlock(&s->lock);
    if (sooner)
        wake_up(&s->wake);
    return !stopping;
}

/* With the lock held. */
static void unlist(struct http_exchange *x)
{
    DL_DELETE(*list_of(x), x);
    x->watched = false;
}

void http_server_unwatch(struct http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    if (x->watched)
        unlist(x);
    pthread_mutex_unlock(&x->server->lock);
}

/* The next one whose deadline is at now_ms or earlier, with a reference that is the caller's; NULL
 * when there is none. A list is in order of deadline, since a route has only one. */
static struct http_exchange *overdue(struct http_server *s, int64_t now_ms)
{
    struct http_exchange *x = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_routes && !x; i++)
        if (s->watched[i] && s->watched[i]->deadline_mono_ms <= now_ms)
            x = s->watched[i];
    if (x) {
        exchange_hold(x);
        unlist(x);
    }
    pthread_mutex_unlock(&s->lock);
    return x;
}

static void answer_overdue(struct http_server *s, int64_t now_ms, const char *detail)
{
    struct headers extra;
    headers_init(&extra);
    headers_put(&extra, "Retry-After", STR_LIT("2"));
    for (struct http_exchange *x; (x = overdue(s, now_ms)); exchange_release(x))
        exchange_refuse(x, 503, detail, &extra);
}

void http_server_give_up(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    answer_overdue(s, INT64_MAX, "shutting down, the outcome is unknown");
}

/* ---- who keeps us waiting ----------------------------------------------------------- */

void http_server_peer_add(struct http_server *s, struct http_peer *peer)
{
    pthread_mutex_lock(&s->lock);
    DL_APPEND(s->peers, peer);
    pthread_mutex_unlock(&s->lock);
}

void http_server_peer_remove(struct http_server *s, struct http_peer *peer)
{
    pthread_mutex_lock(&s->lock);
    DL_DELETE(s->peers, peer);
    pthread_mutex_unlock(&s->lock);
    free(peer);
}

/* microhttpd takes no answer in mid-body, but writes nothing there either: RFC 9110 section 15.5.9.
 */
static void say_too_slow(int fd)
{
    static const char answer[] = "HTTP/1.1 408 Request Timeout\r\n"
                                 "Connection: close\r\n"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: 44\r\n\r\n"
                                 "{\"detail\": \"the body did not come in time\"}\n";
    (void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The socket is only shut down: closing it is microhttpd's, which sees the end of the stream. */
static void cut_slow(struct http_server *s, int64_t now_ms)
{
    struct http_peer *peer;
    pthread_mutex_lock(&s->lock);
    DL_FOREACH(s->peers, peer)
    {
        int64_t since_ms = atomic_load(&peer->waiting_since_ms);
        int64_t due_ms = atomic_load(&peer->body_due_ms);
        bool late = due_ms && now_ms > due_ms;
        if (late)
            say_too_slow(peer->fd);
        if (late || (since_ms && now_ms - since_ms > s->request_limit_ms))
            shutdown(peer->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- the thread --------------------------------------------------------------------- */

/* With the lock held: when the earliest deadline is, at most LOOK_MS away. */
static int64_t next_look(const struct http_server *s, int64_t now_ms)
{
    int64_t at = now_ms + LOOK_MS;
    for (size_t i = 0; i < s->n_routes; i++)
        if (s->watched[i] && s->watched[i]->deadline_mono_ms < at)
            at = s->watched[i]->deadline_mono_ms;
    return at;
}

/* Milliseconds to wait, or -1 at the end. */
static int timer_plan(struct http_server *s)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&s->lock);
    s->next_look_ms = next_look(s, now_ms);
    int wait_ms = s->next_look_ms > now_ms ? (int)(s->next_look_ms - now_ms) : 0;
    if (s->timer_must_end)
        wait_ms = -1;
    pthread_mutex_unlock(&s->lock);
    return wait_ms;
}

static void *timer_main(void *arg)
{
    struct http_server *s = arg;
    struct pollfd fds[1 + LINGER_MAX] = { { .fd = s->wake.fd, .events = POLLIN } };
    int64_t slow_looked_ms = clock_mono_ms();
    for (int wait_ms; (wait_ms = timer_plan(s)) >= 0;) {
        size_t n = 1 + http_server_linger_poll(s, fds + 1);
        poll(fds, n, wait_ms);
        wake_reset(&s->wake);
        int64_t now_ms = clock_mono_ms();
        answer_overdue(s, now_ms, "no answer in time, the outcome is unknown");
        http_server_linger_look(s, now_ms);
        if (now_ms - slow_looked_ms >= LOOK_MS) {
            cut_slow(s, now_ms);
            slow_looked_ms = now_ms;
        }
    }
    return NULL;
}

enum err http_server_timer_start(struct http_server *s, struct why *why)
{
    int failed = pthread_create(&s->timer, NULL, timer_main, s);
    if (failed)
        return why_set(why, ERR_STOP, "pthread_create: %s", strerror(failed));
    s->timer_runs = true;
    return OK;
}

void http_server_timer_stop(struct http_server *s)
{
    if (!s->timer_runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->timer_must_end = true;
    pthread_mutex_unlock(&s->lock);
    wake_up(&s->wake);
    pthread_join(s->timer, NULL);
    s->timer_runs = false;
}
