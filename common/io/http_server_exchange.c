#include "http_server_exchange.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <utlist.h>

#include "../base/mem.h"
#include "http_server_answer.h"

struct http_shared *http_shared_new(const char *error_key, size_t max_inflight_bytes,
                                    size_t n_loops)
{
    struct http_shared *shared =
        mem_alloc(1, sizeof(*shared) + n_loops * sizeof(shared->waiting[0]));
    atomic_init(&shared->refs, 1);
    shared->error_key = mem_dup(error_key);
    shared->inflight.max_bytes = max_inflight_bytes;
    shared->n_loops = n_loops;
    for (size_t i = 0; i < n_loops; i++) {
        shared->waiting[i].wake.fd = -1;
        pthread_mutex_init(&shared->waiting[i].lock, NULL);
    }
    return shared;
}

void http_shared_release(struct http_shared *shared)
{
    if (atomic_fetch_sub(&shared->refs, 1) > 1)
        return;
    for (size_t i = 0; i < shared->n_loops; i++)
        pthread_mutex_destroy(&shared->waiting[i].lock);
    free(shared->error_key);
    free(shared);
}

struct http_exchange *http_exchange_new(struct http_shared *shared, struct http_waiting *waiting,
                                        struct MHD_Connection *connection, const char *method,
                                        const char *path)
{
    struct http_exchange *x = mem_alloc(1, sizeof(*x));
    x->shared = shared;
    x->waiting = waiting;
    x->connection = connection;
    x->head = http_head_new(connection, method, path);
    atomic_init(&x->refs, 1);
    atomic_fetch_add(&shared->refs, 1);
    return x;
}

void http_exchange_release(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    struct http_shared *shared = x->shared;
    http_body_clear(&x->body, &shared->inflight);
    if (x->response)
        MHD_destroy_response(x->response);
    free(x->head);
    free(x);
    http_shared_release(shared);
}

/* ---- the request -------------------------------------------------------------------- */

struct str http_method(const struct http_exchange *x)
{
    return x->head->method;
}

struct str http_path(const struct http_exchange *x)
{
    return x->head->path;
}

struct str http_header(const struct http_exchange *x, const char *name)
{
    return http_head_get(x->head, HTTP_HEADER, name);
}

struct str http_query(const struct http_exchange *x, const char *name)
{
    return http_head_get(x->head, HTTP_QUERY, name);
}

void http_headers(const struct http_exchange *x, struct headers *to)
{
    http_head_list(x->head, HTTP_HEADER, to);
}

void http_queries(const struct http_exchange *x, struct headers *to)
{
    http_head_list(x->head, HTTP_QUERY, to);
}

struct str http_body(const struct http_exchange *x)
{
    return (struct str){ x->body.ptr ? x->body.ptr : "", x->body.len };
}

char *http_take_body(struct http_exchange *x, size_t *len)
{
    return http_body_take(&x->body, len);
}

int64_t http_received_ms(const struct http_exchange *x)
{
    return x->received_ms;
}

/* ---- the answer --------------------------------------------------------------------- */

/* With the lock held; x is not answered yet. response is taken over, NULL closes the
 * connection. Resumed under the lock: microhttpd keeps a connection only as long as it is
 * suspended. */
static void answer(struct http_exchange *x, int status, struct MHD_Response *response)
{
    x->answered = true;
    x->status = (unsigned)status;
    x->response = response;
    if (x->listed)
        DL_DELETE(x->waiting->first, x);
    x->listed = false;
    if (x->suspended) {
        MHD_resume_connection(x->connection);
        http_waiting_wake(x->waiting);
    }
}

/* The first answer wins; false when there was one. */
static bool finish(struct http_exchange *x, int status, struct MHD_Response *response)
{
    pthread_mutex_lock(&x->waiting->lock);
    bool first = !x->answered;
    if (first)
        answer(x, status, response);
    pthread_mutex_unlock(&x->waiting->lock);
    if (!first && response)
        MHD_destroy_response(response);
    return first;
}

/* The handler's answer. What begin refuses was never handed over. */
static bool reply(struct http_exchange *x, int status, struct MHD_Response *response)
{
    bool first = finish(x, status, response);
    if (x->handed_over) {
        http_body_clear(&x->body, &x->shared->inflight);
        http_exchange_release(x);
    }
    return first;
}

bool http_reply(struct http_exchange *x, int status, const char *content_type,
                const struct headers *extra, struct str body)
{
    return reply(x, status, http_answer_new(content_type, extra, body));
}

bool http_reply_error(struct http_exchange *x, int status, const char *detail)
{
    return reply(x, status, http_answer_error(x->shared->error_key, status, detail, STR_NONE));
}

void http_abort(struct http_exchange *x)
{
    reply(x, 0, NULL);
}

bool http_exchange_answered(struct http_exchange *x)
{
    pthread_mutex_lock(&x->waiting->lock);
    bool answered = x->answered;
    pthread_mutex_unlock(&x->waiting->lock);
    return answered;
}

void http_exchange_refuse(struct http_exchange *x, int status, const char *detail, struct str allow)
{
    finish(x, status, http_answer_error(x->shared->error_key, status, detail, allow));
}

/* The handler's thread may have answered before handle returns, or answers at any time after the
 * connection is suspended. */
bool http_exchange_handle(struct http_exchange *x, void *opaque)
{
    struct http_waiting *w = x->waiting;
    pthread_mutex_lock(&w->lock);
    x->listed = !w->stopping;
    if (x->listed)
        DL_APPEND(w->first, x);
    pthread_mutex_unlock(&w->lock);
    if (!x->listed) {
        http_exchange_refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, "shutting down", STR_NONE);
        return false;
    }
    atomic_fetch_add(&x->refs, 1);
    x->handed_over = true;
    x->route->handle(opaque, x);

    pthread_mutex_lock(&w->lock);
    x->suspended = !x->answered;
    bool suspended = x->suspended;
    if (suspended)
        MHD_suspend_connection(x->connection);
    pthread_mutex_unlock(&w->lock);
    return suspended;
}

/* ---- what waits --------------------------------------------------------------------- */

int64_t http_waiting_answer(struct http_shared *shared, struct http_waiting *w, int64_t now_ms,
                            const char *detail, bool stopping)
{
    int64_t next_ms = INT64_MAX;
    struct http_exchange *x, *after;
    pthread_mutex_lock(&w->lock);
    w->stopping |= stopping;
    DL_FOREACH_SAFE(w->first, x, after)
    {
        if (x->due_ms <= now_ms)
            answer(x, MHD_HTTP_SERVICE_UNAVAILABLE,
                   http_answer_error(shared->error_key, MHD_HTTP_SERVICE_UNAVAILABLE, detail,
                                     STR_NONE));
        else if (x->due_ms < next_ms)
            next_ms = x->due_ms;
    }
    pthread_mutex_unlock(&w->lock);
    return next_ms;
}

void http_waiting_wake(struct http_waiting *w)
{
    if (!atomic_exchange(&w->woken, true))
        wake_up(&w->wake);
}
