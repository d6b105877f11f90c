#include "http_server_head.h"

#include <microhttpd.h>
#include <string.h>

#include "../base/mem.h"

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
        p->kind = kind == MHD_HEADER_KIND ? HTTP_HEADER : HTTP_QUERY;
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

struct http_head *http_head_new(struct MHD_Connection *connection, const char *method,
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

struct str http_head_get(const struct http_head *h, enum http_part_kind kind, const char *name)
{
    struct str wanted = str_of(name);
    for (const struct http_part *p = h->parts; p < h->parts + h->n; p++)
        if (p->kind == kind &&
            (kind == HTTP_HEADER ? str_eq_nocase(p->name, wanted) : str_eq(p->name, wanted)))
            return p->value;
    return STR_NONE;
}

void http_head_list(const struct http_head *h, enum http_part_kind kind, struct headers *to)
{
    headers_init(to);
    for (const struct http_part *p = h->parts; p < h->parts + h->n; p++)
        if (p->kind == kind && !headers_put_str(to, p->name, p->value))
            return;
}
