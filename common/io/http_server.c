/* libmicrohttpd calls on_request several times for one request, always on the thread of its loop:
 * once after the head, once for each piece of the body, once after its end, and once more after a
 * resume. An answer can be queued only after the head or after the end. */
#include "http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"
#include "host_port.h"
#include "http_server_exchange.h"
#include "http_server_peer.h"

enum {
    CONNECTION_MEMORY_BYTES = 16 * 1024, /* heads must fit; half of it is read at once */
    UNSENT_BYTES = 16 * 1024,            /* of an answer, in the kernel, for who does not read */
    DISCARD_MAX_BYTES = 64 << 20,        /* of a body that was refused before its end */
    ALLOW_MAX_BYTES = 128,
    IDLE_DEFAULT_S = 30,
    CONNECTIONS_DEFAULT = 10000,
    REQUEST_LIMIT = 3,   /* times the idle time-out: for one request, however busy the client */
    LOOK_MS = 1000,      /* how often each connection is looked at */
    TICK_MS = 10,        /* how exact a deadline is */
    LAST_WORDS_MS = 500, /* for sending what was answered at the end */
    IDLE_LOOK_MS = 5,
};

/* One thread with a microhttpd daemon of its own; all share the listening socket. The threads are
 * ours since microhttpd 0.9.75 (Debian 12) takes at most 128 events from epoll and, when there were
 * exactly that many, waits for more before it looks at any, so that 128 connections that wait for
 * an answer stop everything. MHD_run never waits. */
struct loop {
    struct http_server *server;
    struct http_waiting *waiting;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    bool runs;
    bool starved; /* no descriptor was left for a connection; on its own thread, as the next */
    bool again;   /* a connection has ended: only MHD_run listens again after the limit */
    int64_t next_due_ms; /* no answer is overdue before that */
    struct http_peers peers;
};

struct http_server {
    const struct http_route *routes;
    size_t n_routes;
    void *opaque;
    http_refused_fn *refused; /* NULL: nobody wants to know */
    int listen_fd, port;
    struct loop *loops;
    size_t n_loops;

    struct http_shared *shared;
    atomic_size_t in_flight;                          /* requests begun and not completed */
    atomic_bool closes_after_reply, quiesced, ending; /* ending: the loops must */
};

/* ---- routes ------------------------------------------------------------------------- */

static bool path_matches(const struct http_route *route, struct str path)
{
    struct str pattern = str_of(route->path);
    if (!str_ends(pattern, "*"))
        return str_eq(pattern, path);
    pattern.len--;
    return path.len >= pattern.len && memcmp(path.ptr, pattern.ptr, pattern.len) == 0;
}

/* Gives the route, or NULL: then allow lists what the path would have accepted ("GET, HEAD,
 * POST"), and is empty when there is no such path. */
static const struct http_route *route_find(const struct http_server *s, struct str method,
                                           struct str path, struct buf *allow)
{
    for (const struct http_route *r = s->routes; r < s->routes + s->n_routes; r++) {
        if (!path_matches(r, path))
            continue;
        bool is_get = strcmp(r->method, "GET") == 0;
        if (str_is(method, r->method) || (is_get && str_is(method, "HEAD")))
            return r;
        buf_puts(allow, allow->len ? ", " : "");
        buf_puts(allow, is_get ? "GET, HEAD" : r->method);
    }
    return NULL;
}

/* ---- one request -------------------------------------------------------------------- */

static void refusal_report(struct http_exchange *x, int status)
{
    struct http_server *s = x->peer->loop->server;
    if (s->refused)
        s->refused(s->opaque, x, status);
}

static void refuse_body(struct http_exchange *x, enum err err)
{
    int status = err == ERR_REFUSE ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_SERVICE_UNAVAILABLE;
    char text[96];
    (void)snprintf(text, sizeof(text), "the body is too large; at most %zu bytes are accepted",
                   x->route->max_body_bytes);
    http_exchange_drop_body(x);
    http_exchange_refuse(x, status, err == ERR_REFUSE ? text : "too much in hand, try again",
                         STR_NONE);
    refusal_report(x, status);
}

/* NULL, or why. A path that ends in a star takes names with slashes. */
static const char *head_fault(struct http_exchange *x, const char *version)
{
    struct http_escaped escaped = x->peer->escaped;
    bool exact = !x->route || !str_ends(str_of(x->route->path), "*");
    if (escaped.nul || (escaped.slash && exact))
        return "the path holds an escaped NUL or slash";
    return http_head_fault(x->connection, version);
}

/* What the head alone decides: that it has one meaning, path, method, what begin looks at, declared
 * length; in this order. */
static void request_begin(struct http_exchange *x, const char *version)
{
    struct http_server *s = x->peer->loop->server;
    struct buf CLEANUP(buf_clear) allow;
    buf_init(&allow, ALLOW_MAX_BYTES);
    x->route = route_find(s, http_method(x), http_path(x), &allow);
    const char *fault = head_fault(x, version);
    if (fault) {
        http_exchange_refuse(x, MHD_HTTP_BAD_REQUEST, fault, STR_NONE);
        if (x->route)
            refusal_report(x, MHD_HTTP_BAD_REQUEST);
    } else if (!x->route && allow.len)
        http_exchange_refuse(x, MHD_HTTP_METHOD_NOT_ALLOWED, "this path does not take that method",
                             buf_str(&allow));
    else if (!x->route)
        http_exchange_refuse(x, MHD_HTTP_NOT_FOUND, "no such path", STR_NONE);
    else if (x->route->begin)
        x->route->begin(s->opaque, x);
    if (http_exchange_answered(x))
        return;

    x->body.max = x->route->max_body_bytes;
    /* Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3). */
    uint64_t declared = 0;
    if (!http_header(x, "Transfer-Encoding").ptr)
        (void)str_to_u64(http_header(x, "Content-Length"), &declared);
    x->body.announced = declared;
    if (declared > x->body.max)
        refuse_body(x, ERR_REFUSE);
    else
        http_peer_due(x->peer, x->route->body_ms);
}

/* microhttpd takes no answer in mid-body, so a body that is refused there is read to its end and
 * dropped, within limits. */
static enum MHD_Result request_body(struct http_exchange *x, const char *data, size_t *len)
{
    size_t n = *len;
    *len = 0;
    if (http_exchange_answered(x)) {
        x->discarded += n;
        return x->discarded <= DISCARD_MAX_BYTES ? MHD_YES : MHD_NO;
    }
    enum err err = http_exchange_add(x, data, n);
    if (err == ERR_STOP)
        return MHD_NO;
    if (err)
        refuse_body(x, err);
    return MHD_YES;
}

static enum MHD_Result answer_queue(struct http_exchange *x)
{
    if (!x->response)
        return MHD_NO;
    struct loop *l = x->peer->loop;
    bool refused = x->status >= MHD_HTTP_BAD_REQUEST && x->status < MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (refused || atomic_load(&l->server->closes_after_reply) || l->starved)
        MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONNECTION, "close");
    http_peer_due(x->peer, 0);
    enum MHD_Result queued = MHD_queue_response(x->connection, x->status, x->response);
    MHD_destroy_response(x->response);
    x->response = NULL;
    return queued;
}

static enum MHD_Result request_handle(struct http_exchange *x)
{
    struct loop *l = x->peer->loop;
    int deadline_ms = x->route->deadline_ms;
    if (!http_exchange_body_ends(x))
        return MHD_NO;
    x->peer->due_ms = 0;
    x->received_ms = clock_wall_ms();
    x->due_ms = deadline_ms ? clock_mono_ms() + deadline_ms : INT64_MAX;
    if (x->due_ms < l->next_due_ms)
        l->next_due_ms = x->due_ms;
    return http_exchange_handle(x, l->server->opaque) ? MHD_YES : answer_queue(x);
}

static enum MHD_Result on_request(void *opaque, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **context)
{
    struct loop *l = opaque;
    struct http_exchange *x = *context;
    if (!x) {
        x = *context = http_exchange_new(l->server->shared, l->waiting, connection, method, url);
        x->peer =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
        x->peer->x = x;
        atomic_fetch_add(&l->server->in_flight, 1);
        request_begin(x, version);
        return http_exchange_answered(x) ? answer_queue(x) : MHD_YES;
    }
    if (*len)
        return request_body(x, data, len);
    return http_exchange_answered(x) ? answer_queue(x) : request_handle(x);
}

static void on_completed(void *loop, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    struct http_exchange *x = *context;
    (void)connection, (void)how;
    if (!x)
        return;
    *context = NULL;
    if (!http_exchange_body_ends(x))
        refusal_report(x, MHD_HTTP_SERVICE_UNAVAILABLE);
    x->peer->x = NULL;
    http_peer_head_due(x->peer, x->peer->all->idle_ms);
    http_exchange_release(x);
    atomic_fetch_sub(&((struct loop *)loop)->server->in_flight, 1);
}

/* ---- connections -------------------------------------------------------------------- */

/* The first line has come; microhttpd gives what this returns to on_request as its context. */
static void *on_target(void *loop, const char *target, struct MHD_Connection *connection)
{
    struct http_peer *peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    (void)loop;
    peer->escaped = http_target_escaped(target);
    http_peer_head_due(peer, 0);
    return NULL;
}

static void on_connection(void *opaque, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct loop *l = opaque;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = http_peer_new(&l->peers, l, info->connect_fd);
    } else if (*context) {
        http_peer_free(*context);
        l->starved = false;
        l->again = true;
    }
}

/* RFC 9110 section 15.5.9. */
static void refuse_slow_body(struct http_exchange *x)
{
    if (http_exchange_answered(x))
        return;
    http_peer_refuse(x->peer, "408 Request Timeout", "the body did not come in time");
    refusal_report(x, MHD_HTTP_REQUEST_TIMEOUT);
}

/* Where accept finds no descriptor microhttpd accepts nothing more until one of its connections is
 * closed, also when there are descriptors again; and clients keep theirs. It tells only its log,
 * with the error of accept still in errno. */
static void on_log(void *loop, const char *format, va_list ap)
{
    (void)format, (void)ap;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        ((struct loop *)loop)->starved = true;
    errno = 0; /* what is logged next may set none */
}

size_t http_server_max_connections(int wanted)
{
    size_t n = wanted > 0 ? (size_t)wanted : CONNECTIONS_DEFAULT;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 * 3 < n)
        n = limit.rlim_cur / 4 * 3;
    return n;
}

/* ---- loops -------------------------------------------------------------------------- */

/* How long a loop can be left alone when nothing happens. */
static int patience_ms(const struct loop *l)
{
    MHD_UNSIGNED_LONG_LONG idle_ms;
    int64_t ms = l->next_due_ms - clock_mono_ms();
    if (MHD_get_timeout(l->daemon, &idle_ms) == MHD_YES && (int64_t)idle_ms < ms)
        ms = (int64_t)idle_ms;
    return ms < 0 ? 0 : ms < LOOK_MS ? (int)ms : LOOK_MS;
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    struct http_server *s = l->server;
    bool quiesced = false;
    int64_t looked_ms = clock_mono_ms();
    struct pollfd fds[] = {
        { .fd = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
          .events = POLLIN },
        { .fd = l->waiting->wake.fd, .events = POLLIN },
    };
    while (!atomic_load(&s->ending)) {
        int ms = l->again ? 0 : patience_ms(l);
        fds[1].revents = 0;
        if (ms) /* else MHD_run looks for itself what has come */
            poll(fds, 2, ms);
        l->again = false;
        if (fds[1].revents || atomic_load(&l->waiting->woken)) {
            wake_reset(&l->waiting->wake);
            atomic_store(&l->waiting->woken, false);
        }
        if (!quiesced && atomic_load(&s->quiesced)) {
            MHD_quiesce_daemon(l->daemon);
            quiesced = true;
        }
        for (size_t n = atomic_exchange(&l->waiting->unread, 0); n > 0; n--)
            http_peers_end_reader(&l->peers);
        MHD_run(l->daemon);
        int64_t now_ms = clock_mono_ms();
        if (now_ms >= l->next_due_ms) {
            int64_t next_ms = http_waiting_answer(
                s->shared, l->waiting, now_ms, "no answer in time, the outcome is unknown", false);
            l->next_due_ms = next_ms > now_ms + TICK_MS ? next_ms : now_ms + TICK_MS;
        }
        if (now_ms - looked_ms >= LOOK_MS) {
            http_peers_cut_off(&l->peers, now_ms, refuse_slow_body);
            looked_ms = now_ms;
        }
    }
    return NULL;
}

static enum err loop_start(struct loop *l, const struct http_server_options *o, unsigned idle_s,
                           struct why *why)
{
    struct http_server *s = l->server;
    enum err err = wake_init(&l->waiting->wake, why);
    if (err)
        return err;
    size_t connections = http_server_max_connections(o->max_connections) / s->n_loops + 1;
    l->peers = (struct http_peers){ .crowd = connections - connections / 8,
                                    .idle_ms = (int64_t)idle_s * 1000,
                                    .request_limit_ms = (int64_t)idle_s * 1000 * REQUEST_LIMIT };
    struct MHD_OptionItem options[] = {
        { MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_log, l }, /* first, so that it knows of all */
        { MHD_OPTION_LISTEN_SOCKET, s->listen_fd, NULL },
        { MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)idle_s, NULL },
        { MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connections, NULL },
        { MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_connections_per_address, NULL },
        { MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, NULL },
        { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
        { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_target, l },
        { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, l },
        { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, l },
        { MHD_OPTION_END, 0, NULL },
    };
    l->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
                         NULL, on_request, l, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (!l->daemon)
        return why_set(why, ERR_STOP, "microhttpd did not start on %s", o->listen);
    int failed = pthread_create(&l->thread, NULL, loop_main, l);
    if (failed)
        return why_set(why, ERR_STOP, "pthread_create: %s", strerror(failed));
    l->runs = true;
    return OK;
}

/* ---- the server --------------------------------------------------------------------- */

enum err http_server_new(struct http_server **ret, const struct http_server_options *o,
                         struct why *why)
{
    struct http_server *s = mem_alloc(1, sizeof(*s));
    s->routes = o->routes;
    s->n_routes = o->n_routes;
    s->opaque = o->opaque;
    s->refused = o->refused;
    s->listen_fd = -1;
    unsigned idle_s = o->idle_timeout_s > 0 ? (unsigned)o->idle_timeout_s : IDLE_DEFAULT_S;
    s->n_loops = o->threads > 0 ? (size_t)o->threads : 1;
    s->loops = mem_alloc(s->n_loops, sizeof(*s->loops));
    s->shared = http_shared_new(o->json_error_key ? o->json_error_key : "detail",
                                o->max_inflight_bytes, s->n_loops);
    for (size_t i = 0; i < s->n_loops; i++)
        s->loops[i] = (struct loop){ .server = s,
                                     .waiting = &s->shared->waiting[i],
                                     .next_due_ms = INT64_MAX };
    enum err err = host_port_listen(o->listen, &s->listen_fd, &s->port, why);
    if (!err) /* each connection inherits it */
        setsockopt(s->listen_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){ UNSENT_BYTES },
                   sizeof(int));
    for (size_t i = 0; i < s->n_loops && !err; i++)
        err = loop_start(&s->loops[i], o, idle_s, why);
    if (err) {
        http_server_free(s, 0);
        return err;
    }
    *ret = s;
    return OK;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

size_t http_server_in_flight(struct http_server *s)
{
    return atomic_load(&s->in_flight);
}

void http_server_last_requests(struct http_server *s)
{
    atomic_store(&s->closes_after_reply, true);
}

/* The loops may still use the socket, so it is shut down here, which makes the kernel refuse new
 * clients and wakes the loops, and closed in http_server_free. */
void http_server_quiesce(struct http_server *s)
{
    http_server_last_requests(s);
    if (!atomic_exchange(&s->quiesced, true) && s->listen_fd >= 0)
        shutdown(s->listen_fd, SHUT_RDWR);
}

static void wait_idle(struct http_server *s, int limit_ms)
{
    int64_t until_ms = clock_mono_ms() + limit_ms;
    while (http_server_in_flight(s) && clock_mono_ms() < until_ms)
        poll(NULL, 0, IDLE_LOOK_MS);
}

/* microhttpd aborts when it is stopped with a connection suspended: everything that waits is
 * answered first, and from then on nothing is suspended any more. It would also close the listening
 * socket, which is shared, so each daemon is quiesced before. */
void http_server_free(struct http_server *s, int drain_ms)
{
    if (!s)
        return;
    http_server_quiesce(s);
    wait_idle(s, drain_ms);
    for (size_t i = 0; i < s->n_loops; i++)
        (void)http_waiting_answer(s->shared, s->loops[i].waiting, INT64_MAX,
                                  "shutting down, the outcome is unknown", true);
    wait_idle(s, LAST_WORDS_MS);
    atomic_store(&s->ending, true);
    for (struct loop *l = s->loops; l < s->loops + s->n_loops; l++) {
        if (l->runs) {
            http_waiting_wake(l->waiting);
            pthread_join(l->thread, NULL);
        }
        if (l->daemon) {
            MHD_quiesce_daemon(l->daemon);
            MHD_stop_daemon(l->daemon);
        }
        wake_clear(&l->waiting->wake);
    }
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    http_shared_release(s->shared);
    free(s->loops);
    free(s);
}
