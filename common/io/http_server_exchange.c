#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/json_text.h"
#include "../base/mem.h"
#include "http_server_inner.h"

enum { DETAIL_MAX_BYTES = 1024, ERROR_MAX_BYTES = 8192 };

/* ---- the request, copied ------------------------------------------------------------ */

struct tally {
    size_t n;
    size_t bytes;
};

static enum MHD_Result count_part(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    struct tally *t = cls;
    (void)kind, (void)key, (void)value;
    t->n++;
    t->bytes += key_size + value_size;
    return MHD_YES;
}

struct copier {
    struct http_exchange *x;
    char *to;
};

static struct str copy(struct copier *c, const char *from, size_t len)
{
    struct str copied = { c->to, len };
    if (len)
        memcpy(c->to, from, len);
    c->to += len;
    return copied;
}

static enum MHD_Result copy_part(void *cls, enum MHD_ValueKind kind, const char *key,
                                 size_t key_size, const char *value, size_t value_size)
{
    struct copier *c = cls;
    struct part *p = &c->x->parts[c->x->n_parts++];
    p->kind = kind == MHD_HEADER_KIND ? PART_HEADER : PART_QUERY;
    p->name = copy(c, key, key_size);
    p->value = copy(c, value, value_size);
    return MHD_YES;
}

struct http_exchange *exchange_new(struct http_loop *l, struct MHD_Connection *connection,
                                   const char *method, const char *path)
{
    struct tally t = { 0, strlen(method) + strlen(path) };
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, count_part, &t);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, count_part, &t);

    size_t head = sizeof(struct http_exchange) + t.n * sizeof(struct part);
    struct http_exchange *x = mem_alloc(1, head + t.bytes);
    struct copier c = { x, (char *)x + head };
    x->method = copy(&c, method, strlen(method));
    x->path = copy(&c, path, strlen(path));
    if (x->path.len > 1 && str_ends(x->path, "/"))
        x->path.len--;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, copy_part, &c);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, copy_part, &c);

    x->server = l->server;
    x->loop = l;
    x->connection = connection;
    atomic_init(&x->refs, 1);
    pthread_mutex_init(&x->lock, NULL);
    atomic_fetch_add(&x->server->refs, 1);
    return x;
}

void exchange_hold(struct http_exchange *x)
{
    atomic_fetch_add(&x->refs, 1);
}

void exchange_release(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    struct http_server *s = x->server;
    exchange_body_drop(x);
    if (x->response)
        MHD_destroy_response(x->response);
    pthread_mutex_destroy(&x->lock);
    free(x);
    http_server_release(s);
}

struct str http_method(const struct http_exchange *x)
{
    return x->method;
}

struct str http_path(const struct http_exchange *x)
{
    return x->path;
}

struct str http_header(const struct http_exchange *x, const char *name)
{
    struct str wanted = str_of(name);
    for (const struct part *p = x->parts; p < x->parts + x->n_parts; p++)
        if (p->kind == PART_HEADER && str_eq_nocase(p->name, wanted))
            return p->value;
    return STR_NONE;
}

struct str http_query(const struct http_exchange *x, const char *name)
{
    for (const struct part *p = x->parts; p < x->parts + x->n_parts; p++)
        if (p->kind == PART_QUERY && str_is(p->name, name))
            return p->value;
    return STR_NONE;
}

static void parts_of(const struct http_exchange *x, enum part_kind kind, struct headers *to)
{
    headers_init(to);
    for (const struct part *p = x->parts; p < x->parts + x->n_parts; p++)
        if (p->kind == kind && !headers_put_str(to, p->name, p->value))
            return;
}

void http_headers(const struct http_exchange *x, struct headers *to)
{
    parts_of(x, PART_HEADER, to);
}

void http_queries(const struct http_exchange *x, struct headers *to)
{
    parts_of(x, PART_QUERY, to);
}

int64_t http_received_ms(const struct http_exchange *x)
{
    return x->received_ms;
}

void http_set_user(struct http_exchange *x, void *user)
{
    x->user = user;
}

void *http_user(const struct http_exchange *x)
{
    return x->user;
}

/* ---- the answer --------------------------------------------------------------------- */

static void add_header(struct MHD_Response *response, struct str name, struct str value)
{
    char *CLEANUP(mem_free_char) n = str_dup(name);
    char *CLEANUP(mem_free_char) v = str_dup(value);
    /* microhttpd refuses names and values that would break the message; such a header is left out.
     */
    MHD_add_response_header(response, n, v);
}

static struct MHD_Response *response_new(const char *content_type, const struct headers *extra,
                                         struct str body)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.len, (void *)(uintptr_t)(body.ptr ? body.ptr : ""), MHD_RESPMEM_MUST_COPY);
    if (!response)
        return NULL;
    if (body.len)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                content_type ? content_type : "application/json");
    for (size_t i = 0; extra && i < extra->n; i++)
        add_header(response, extra->at[i].name, extra->at[i].value);
    return response;
}

/* The first answer wins; response is taken over, NULL closes the connection. A suspended connection
 * is resumed under the lock: microhttpd keeps it only as long as it is suspended. */
static bool settle_with(struct http_exchange *x, int status, struct MHD_Response *response)
{
    pthread_mutex_lock(&x->lock);
    bool first = x->state != EXCHANGE_ANSWERED;
    if (first) {
        bool suspended = x->state == EXCHANGE_SUSPENDED;
        x->response = response;
        x->status = (unsigned)status;
        x->state = EXCHANGE_ANSWERED;
        if (suspended) {
            MHD_resume_connection(x->connection);
            http_loop_wake(x->loop);
        }
    }
    pthread_mutex_unlock(&x->lock);
    if (first)
        http_server_unwatch(x);
    else if (response)
        MHD_destroy_response(response);
    return first;
}

static bool settle(struct http_exchange *x, int status, const char *content_type,
                   const struct headers *extra, struct str body)
{
    return settle_with(x, status, response_new(content_type, extra, body));
}

bool exchange_is_answered(struct http_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool answered = x->state == EXCHANGE_ANSWERED;
    pthread_mutex_unlock(&x->lock);
    return answered;
}

bool exchange_refuse(struct http_exchange *x, int status, const char *detail,
                     const struct headers *extra)
{
    struct buf CLEANUP(buf_clear) text;
    struct str said = str_of(detail);
    buf_init(&text, ERROR_MAX_BYTES);
    if (said.len > DETAIL_MAX_BYTES)
        said.len = DETAIL_MAX_BYTES;
    buf_putc(&text, '{');
    json_text_put(&text, str_of(x->server->error_key));
    buf_puts(&text, ": ");
    json_text_put(&text, said);
    buf_putc(&text, '}');
    return settle(x, status, NULL, extra, buf_str(&text));
}

/* The handler is done with the request; what begin refuses was never handed over. */
static void give_back(struct http_exchange *x)
{
    if (!x->handed_over)
        return;
    exchange_body_drop(x);
    exchange_release(x);
}

bool http_reply(struct http_exchange *x, int status, const char *content_type,
                const struct headers *extra, struct str body)
{
    bool first = settle(x, status, content_type, extra, body);
    give_back(x);
    return first;
}

void http_abort(struct http_exchange *x)
{
    settle_with(x, 0, NULL);
    give_back(x);
}

bool http_reply_error(struct http_exchange *x, int status, const char *detail)
{
    bool first = exchange_refuse(x, status, detail, NULL);
    give_back(x);
    return first;
}
