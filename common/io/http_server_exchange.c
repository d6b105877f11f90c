#include "http_server_exchange.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/buf.h"
#include "../base/json_text.h"
#include "../base/mem.h"
#include "http_server_peer.h"

/* ---- its head -------------------------------------------------------------------- */

struct http_part {
    enum MHD_ValueKind kind; /* of headers, or of arguments */
    struct str name, value;  /* of the query: decoded */
};

/* A copy in one block: the deadline may have answered, and microhttpd forgotten the request, while
 * a handler still reads it. */
struct http_head {
    struct str method;
    struct str path; /* decoded; without a trailing slash */
    size_t n;
    struct http_part parts[]; /* the text that they borrow follows */
};

/* Counts while to is NULL, then copies. */
struct copier {
    struct http_head *to;
    char *text;
    size_t n, bytes;
};

static struct str copy(struct copier *c, const char *from, size_t len)
{
    struct str copied = { c->text, len };
    if (len)
        memcpy(c->text, from, len);
    c->text += len;
    return copied;
}

static enum MHD_Result on_part(void *opaque, enum MHD_ValueKind kind, const char *name,
                               size_t name_len, const char *value, size_t value_len)
{
    struct copier *c = opaque;
    c->n++;
    c->bytes += name_len + value_len;
    if (c->to) {
        struct http_part *p = &c->to->parts[c->to->n++];
        p->kind = kind;
        p->name = copy(c, name, name_len);
        p->value = copy(c, value, value_len);
    }
    return MHD_YES;
}

static void each_part(struct MHD_Connection *connection, struct copier *c)
{
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_part, c);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, on_part, c);
}

static struct http_head *head_new(struct MHD_Connection *connection, const char *method,
                                  const char *path)
{
    struct copier c = { .bytes = strlen(method) + strlen(path) };
    each_part(connection, &c);
    size_t size = sizeof(struct http_head) + c.n * sizeof(struct http_part);
    struct http_head *h = c.to = mem_alloc(1, size + c.bytes);
    c.text = (char *)h + size;
    h->method = copy(&c, method, strlen(method));
    h->path = copy(&c, path, strlen(path));
    if (h->path.len > 1 && str_ends(h->path, "/"))
        h->path.len--;
    each_part(connection, &c);
    return h;
}

/* The first of that name, or STR_NONE. The case of a header's name is ignored. */
static struct str head_get(const struct http_head *h, enum MHD_ValueKind kind, const char *name)
{
    struct str wanted = str_of(name);
    for (const struct http_part *p = h->parts; p < h->parts + h->n; p++)
        if (p->kind == kind &&
            (kind == MHD_HEADER_KIND ? str_eq_nocase(p->name, wanted) : str_eq(p->name, wanted)))
            return p->value;
    return STR_NONE;
}

static void head_list(const struct http_head *h, enum MHD_ValueKind kind, struct headers *to)
{
    headers_init(to);
    for (const struct http_part *p = h->parts; p < h->parts + h->n; p++)
        if (p->kind == kind && !headers_put_str(to, p->name, p->value))
            return;
}

/* ---- its body -------------------------------------------------------------------- */

enum { FIRST_ROOM = 4096, FIRST_ROOM_ANNOUNCED = 64 * 1024 };

/* With the lock held, as the next three. */
static void body_unlist(struct http_exchange *x)
{
    if (x->incomplete)
        DL_DELETE2(x->shared->inflight.oldest, x, older, newer);
    x->incomplete = false;
}

static void body_free(struct http_exchange *x)
{
    struct http_body *b = &x->body;
    body_unlist(x);
    free(b->ptr);
    x->shared->inflight.bytes -= b->room;
    b->ptr = NULL;
    b->len = b->room = 0;
}

static void displace(struct http_exchange *x)
{
    body_free(x);
    x->displaced = true;
    http_peer_refuse(x->peer, "503 Service Unavailable", "too much in hand, try again");
}

/* False: nobody but x, or nobody at all, can make room for more. */
static bool room_make(struct http_exchange *x, size_t more)
{
    struct http_inflight *all = &x->shared->inflight;
    while (all->max_bytes && all->bytes + more > all->max_bytes) {
        if (!all->oldest || all->oldest == x)
            return false;
        displace(all->oldest);
    }
    return true;
}

/* Sizes come from outside: plain realloc, and a polite refusal when there is no memory. */
static enum err body_add(struct http_exchange *x, const char *data, size_t len)
{
    struct http_body *b = &x->body;
    struct http_inflight *all = &x->shared->inflight;
    if (x->displaced)
        return ERR_STOP;
    size_t need = b->len + len;
    if (need > b->max)
        return ERR_REFUSE;
    if (need > b->room) {
        size_t limit = b->announced ? b->announced : b->max;
        size_t room = b->room ? b->room * 2 : b->announced ? FIRST_ROOM_ANNOUNCED : FIRST_ROOM;
        if (room > limit)
            room = limit;
        if (room < need)
            room = need;
        char *ptr = room_make(x, room - b->room) ? realloc(b->ptr, room + 1) : NULL;
        if (!ptr)
            return ERR_RETRY;
        if (!x->incomplete)
            DL_APPEND2(all->oldest, x, older, newer);
        x->incomplete = true;
        all->bytes += room - b->room;
        b->ptr = ptr;
        b->room = room;
    }
    memcpy(b->ptr + b->len, data, len);
    b->len = need;
    b->ptr[need] = '\0';
    return OK;
}

enum err http_exchange_add(struct http_exchange *x, const char *data, size_t len)
{
    pthread_mutex_lock(&x->shared->inflight.lock);
    enum err err = body_add(x, data, len);
    pthread_mutex_unlock(&x->shared->inflight.lock);
    return err;
}

void http_exchange_displace(struct http_exchange *x)
{
    pthread_mutex_lock(&x->shared->inflight.lock);
    displace(x);
    pthread_mutex_unlock(&x->shared->inflight.lock);
}

bool http_exchange_body_ends(struct http_exchange *x)
{
    pthread_mutex_lock(&x->shared->inflight.lock);
    body_unlist(x);
    bool displaced = x->displaced;
    pthread_mutex_unlock(&x->shared->inflight.lock);
    return !displaced;
}

void http_exchange_drop_body(struct http_exchange *x)
{
    pthread_mutex_lock(&x->shared->inflight.lock);
    body_free(x);
    pthread_mutex_unlock(&x->shared->inflight.lock);
}

/* ---- life ------------------------------------------------------------------------ */

struct http_shared *http_shared_new(const char *error_key, size_t max_inflight_bytes,
                                    size_t n_loops)
{
    struct http_shared *shared =
        mem_alloc(1, sizeof(*shared) + n_loops * sizeof(shared->waiting[0]));
    atomic_init(&shared->refs, 1);
    shared->error_key = mem_dup(error_key);
    shared->inflight.max_bytes = max_inflight_bytes;
    pthread_mutex_init(&shared->inflight.lock, NULL);
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
    pthread_mutex_destroy(&shared->inflight.lock);
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
    x->head = head_new(connection, method, path);
    atomic_init(&x->refs, 1);
    atomic_fetch_add(&shared->refs, 1);
    return x;
}

void http_exchange_release(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    struct http_shared *shared = x->shared;
    http_exchange_drop_body(x);
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
    return head_get(x->head, MHD_HEADER_KIND, name);
}

struct str http_query(const struct http_exchange *x, const char *name)
{
    return head_get(x->head, MHD_GET_ARGUMENT_KIND, name);
}

void http_headers(const struct http_exchange *x, struct headers *to)
{
    head_list(x->head, MHD_HEADER_KIND, to);
}

void http_queries(const struct http_exchange *x, struct headers *to)
{
    head_list(x->head, MHD_GET_ARGUMENT_KIND, to);
}

struct str http_body(const struct http_exchange *x)
{
    return (struct str){ x->body.ptr ? x->body.ptr : "", x->body.len };
}

/* It stays counted until http_exchange_drop_body: the bytes are still in hand. */
char *http_take_body(struct http_exchange *x, size_t *len)
{
    struct http_body *b = &x->body;
    char *ptr = b->ptr ? b->ptr : calloc(1, 1);
    *len = b->len;
    b->ptr = NULL;
    b->len = 0;
    return ptr;
}

int64_t http_received_ms(const struct http_exchange *x)
{
    return x->received_ms;
}

/* ---- the answer --------------------------------------------------------------------- */

enum { ERROR_MAX_BYTES = 8192, DETAIL_MAX_BYTES = 1024 };

/* NULL when there is no memory. release NULL: body is copied. */
static struct MHD_Response *answer_new(const char *content_type, const struct headers *extra,
                                       struct str body, void (*release)(void *owner), void *owner)
{
    void *bytes = (void *)(uintptr_t)(body.ptr ? body.ptr : "");
    struct MHD_Response *response =
        release ? MHD_create_response_from_buffer_with_free_callback_cls(body.len, bytes, release,
                                                                         owner)
                : MHD_create_response_from_buffer(body.len, bytes, MHD_RESPMEM_MUST_COPY);
    if (!response && release)
        release(owner);
    if (!response)
        return NULL;
    if (body.len)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                content_type ? content_type : "application/json");
    for (size_t i = 0; extra && i < extra->n; i++) {
        char *CLEANUP(mem_free_char) name = str_dup(extra->at[i].name);
        char *CLEANUP(mem_free_char) value = str_dup(extra->at[i].value);
        MHD_add_response_header(response, name,
                                value); /* leaves out what would break the message */
    }
    return response;
}

/* {"<key>": "<detail>"}; a 503 says when to come again. allow: the methods of a 405, else STR_NONE.
 */
static struct MHD_Response *answer_error(const char *key, int status, const char *detail,
                                         struct str allow)
{
    struct buf CLEANUP(buf_clear) text;
    struct headers extra;
    buf_init(&text, ERROR_MAX_BYTES);
    buf_putc(&text, '{');
    json_text_put(&text, str_of(key));
    buf_puts(&text, ": ");
    json_text_put(&text, str_cut(str_of(detail), DETAIL_MAX_BYTES));
    buf_putc(&text, '}');
    headers_init(&extra);
    headers_put(&extra, "Allow", allow);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        headers_put(&extra, "Retry-After", STR_LIT("2"));
    return answer_new(NULL, &extra, buf_str(&text), NULL, NULL);
}

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
static bool answer_finish(struct http_exchange *x, int status, struct MHD_Response *response)
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
    bool first = answer_finish(x, status, response);
    if (x->handed_over) {
        http_exchange_drop_body(x);
        http_exchange_release(x);
    }
    return first;
}

bool http_reply(struct http_exchange *x, int status, const char *content_type,
                const struct headers *extra, struct str body)
{
    return reply(x, status, answer_new(content_type, extra, body, NULL, NULL));
}

bool http_reply_lent(struct http_exchange *x, int status, const char *content_type,
                     const struct headers *extra, struct str body, void (*release)(void *owner),
                     void *owner)
{
    return reply(x, status, answer_new(content_type, extra, body, release, owner));
}

void http_end_slowest_reader(struct http_exchange *x)
{
    atomic_fetch_add(&x->waiting->unread, 1);
    http_waiting_wake(x->waiting);
}

bool http_reply_error(struct http_exchange *x, int status, const char *detail)
{
    return reply(x, status, answer_error(x->shared->error_key, status, detail, STR_NONE));
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
    answer_finish(x, status, answer_error(x->shared->error_key, status, detail, allow));
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
                   answer_error(shared->error_key, MHD_HTTP_SERVICE_UNAVAILABLE, detail, STR_NONE));
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
