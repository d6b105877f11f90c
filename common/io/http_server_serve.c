/* How microhttpd calls us. For one request on_request runs several times, always on the thread that
 * owns the connection: once after the headers, once for each piece of the body, once after its end,
 * and once more after a resume. An answer can be queued only after the headers or after the end. */
#include <microhttpd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"
#include "http_server_inner.h"

enum {
    CONNECTION_MEMORY_BYTES = 16 * 1024, /* headers must fit; more makes bodies no faster */
    DISCARD_MAX_BYTES = 64 * 1024 * 1024,
    ALLOW_MAX_BYTES = 128,
    IDLE_DEFAULT_S = 30,
    CONNECTIONS_DEFAULT = 10000,
    REQUEST_LIMIT = 3, /* times the idle time-out: for one request, however busy the client */
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

static bool method_matches(const struct http_route *route, struct str method)
{
    return str_is(method, route->method) ||
           (str_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

static const struct http_route *route_find(const struct http_server *s, struct str method,
                                           struct str path)
{
    for (const struct http_route *r = s->routes; r < s->routes + s->n_routes; r++)
        if (method_matches(r, method) && path_matches(r, path))
            return r;
    return NULL;
}

/* "GET, HEAD, POST": what the path would have accepted; empty when there is no such path. */
static void allow_list(const struct http_server *s, struct str path, struct buf *to)
{
    for (const struct http_route *r = s->routes; r < s->routes + s->n_routes; r++) {
        if (!path_matches(r, path))
            continue;
        if (to->len)
            buf_puts(to, ", ");
        buf_puts(to, r->method);
        if (strcmp(r->method, "GET") == 0)
            buf_puts(to, ", HEAD");
    }
}

static void refuse_route(struct http_exchange *x)
{
    struct buf CLEANUP(buf_clear) allow;
    struct headers extra;
    buf_init(&allow, ALLOW_MAX_BYTES);
    allow_list(x->server, x->path, &allow);
    headers_init(&extra);
    if (!allow.len) {
        exchange_refuse(x, MHD_HTTP_NOT_FOUND, "no such path", NULL);
        return;
    }
    headers_put(&extra, "Allow", buf_str(&allow));
    exchange_refuse(x, MHD_HTTP_METHOD_NOT_ALLOWED, "this path does not take that method", &extra);
}

/* ---- one request -------------------------------------------------------------------- */

static void refuse_body(struct http_exchange *x, enum err err)
{
    bool large = err == ERR_REFUSE;
    int status = large ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_SERVICE_UNAVAILABLE;
    struct headers extra;
    headers_init(&extra);
    if (!large)
        headers_put(&extra, "Retry-After", STR_LIT("2"));
    exchange_refuse(x, status, large ? "the body is too large" : "too much in hand, try again",
                    &extra);
    if (x->server->refused)
        x->server->refused(x->server->opaque, x, status);
}

static void request_begin(struct http_exchange *x)
{
    if (!x->route) {
        refuse_route(x);
        return;
    }
    if (x->route->begin)
        x->route->begin(x->server->opaque, x);
    if (exchange_is_answered(x))
        return;
    enum err err = exchange_body_expect(x);
    if (err)
        refuse_body(x, err);
    else if (x->route->body_ms)
        atomic_store(&x->peer->body_due_ms, clock_mono_ms() + x->route->body_ms);
}

/* microhttpd takes no answer in mid-body, so what is refused there is read to its end and thrown
 * away, within limits. */
static enum MHD_Result request_body(struct http_exchange *x, const char *data, size_t *len)
{
    size_t n = *len;
    *len = 0;
    if (exchange_is_answered(x)) {
        x->discarded += n;
        return x->discarded <= DISCARD_MAX_BYTES ? MHD_YES : MHD_NO;
    }
    enum err err = exchange_body_add(x, data, n);
    if (err) {
        exchange_body_drop(x);
        refuse_body(x, err);
    }
    return MHD_YES;
}

static enum MHD_Result answer_queue(struct http_exchange *x)
{
    if (!x->response)
        return MHD_NO;
    if (atomic_load(&x->server->closes_after_reply) || x->loop->starved)
        MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONNECTION, "close");
    atomic_store(&x->peer->waiting_since_ms, clock_mono_ms());
    atomic_store(&x->peer->body_due_ms, 0);
    enum MHD_Result queued = MHD_queue_response(x->connection, x->status, x->response);
    MHD_destroy_response(x->response);
    x->response = NULL;
    return queued;
}

/* Hands a complete request over. The handler's thread may have answered before handle returns, or
 * answers at any time after the connection is suspended. */
static enum MHD_Result request_handle(struct http_exchange *x)
{
    atomic_store(&x->peer->waiting_since_ms, 0);
    atomic_store(&x->peer->body_due_ms, 0);
    x->received_ms = clock_wall_ms();
    x->state = EXCHANGE_HANDLING;
    if (!http_server_watch(x)) {
        exchange_refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, "shutting down", NULL);
        return answer_queue(x);
    }
    exchange_hold(x);
    x->handed_over = true;
    x->route->handle(x->server->opaque, x);

    pthread_mutex_lock(&x->lock);
    bool answered = x->state == EXCHANGE_ANSWERED;
    if (!answered) {
        x->state = EXCHANGE_SUSPENDED;
        MHD_suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->lock);
    return answered ? answer_queue(x) : MHD_YES;
}

static bool body_is_announced(const struct http_exchange *x)
{
    struct str length = http_header(x, "Content-Length");
    return http_header(x, "Transfer-Encoding").ptr || (length.len && !str_is(length, "0"));
}

static struct http_exchange *request_new(struct http_loop *l, struct MHD_Connection *connection,
                                         const char *url, const char *method)
{
    struct http_server *s = l->server;
    struct http_exchange *x = exchange_new(l, connection, method, url);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->peer = info->socket_context;
    x->route = route_find(s, x->method, x->path);
    pthread_mutex_lock(&s->lock);
    s->in_flight++;
    x->peer->asked = true;
    pthread_mutex_unlock(&s->lock);
    return x;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **con_cls)
{
    (void)version;
    struct http_exchange *x = *con_cls;
    if (!x) {
        x = *con_cls = request_new(cls, connection, url, method);
        request_begin(x);
        if (!exchange_is_answered(x))
            return MHD_YES;
        x->cut_short = body_is_announced(x);
        return answer_queue(x);
    }
    if (*len)
        return request_body(x, data, len);
    return exchange_is_answered(x) ? answer_queue(x) : request_handle(x);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection;
    struct http_server *s = ((struct http_loop *)cls)->server;
    struct http_exchange *x = *con_cls;
    if (!x)
        return;
    *con_cls = NULL;
    if (x->cut_short && how == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http_server_linger(s, x->peer->fd);
    atomic_store(&x->peer->waiting_since_ms, clock_mono_ms());
    exchange_release(x);
    pthread_mutex_lock(&s->lock);
    if (--s->in_flight == 0)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

/* ---- connections -------------------------------------------------------------------- */

static void peer_open(struct http_server *s, struct MHD_Connection *connection, void **context)
{
    struct http_peer *peer = mem_alloc(1, sizeof(*peer));
    peer->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    peer->opened_ms = clock_mono_ms();
    atomic_init(&peer->waiting_since_ms, peer->opened_ms);
    http_server_peer_add(s, peer);
    *context = peer;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = ((struct http_loop *)cls)->server;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        peer_open(s, connection, context);
    else if (*context) {
        http_server_peer_remove(s, *context);
        ((struct http_loop *)cls)->starved = false;
    }
}

/* Where accept finds no descriptor microhttpd accepts nothing more until one of its connections is
 * closed, also when there are descriptors again; and clients keep theirs. Nothing but its log tells
 * of it. */
static void on_log(void *cls, const char *format, va_list ap)
{
    (void)ap;
    if (strstr(format, "suspending accept"))
        ((struct http_loop *)cls)->starved = true;
}

/* Connections may take three quarters of the descriptors: however many clients come, Kafka, Redis
 * and the issuers must stay within reach. */
size_t http_server_max_connections(int wanted)
{
    size_t n = wanted > 0 ? (size_t)wanted : CONNECTIONS_DEFAULT;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 * 3 < n)
        n = limit.rlim_cur / 4 * 3;
    return n;
}

/* ---- start -------------------------------------------------------------------------- */

struct MHD_Daemon *http_server_daemon_new(struct http_loop *l, const struct http_server_options *o)
{
    struct http_server *s = l->server;
    unsigned idle_s = o->idle_timeout_s > 0 ? (unsigned)o->idle_timeout_s : IDLE_DEFAULT_S;
    size_t connections = http_server_max_connections(o->max_connections);
    struct MHD_OptionItem options[] = {
        { MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_log, l }, /* first, so that it knows of all */
        { MHD_OPTION_LISTEN_SOCKET, s->listen_fd, NULL },
        { MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)idle_s, NULL },
        { MHD_OPTION_CONNECTION_LIMIT, (intptr_t)(connections / s->n_loops + 1), NULL },
        { MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, NULL },
        { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
        { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, l },
        { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, l },
        { MHD_OPTION_END, 0, NULL },
    };
    s->request_limit_ms = (int64_t)idle_s * 1000 * REQUEST_LIMIT;
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
                            NULL, on_request, l, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}
