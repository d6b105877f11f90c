#include "burial.h"

#include <stdio.h>

#include "limits.h"

/* What we add, and the protocol: some 10 bytes a header, 100 in all. */
#define ADDED_MAX_BYTES   4096
#define ADDED_MAX_HEADERS 5 /* source_topic, class, error, parked_ms; cut */
/* Of one that is cut. */
#define KEY_KEPT_BYTES    1024
#define VALUE_KEPT_BYTES  65536
#define HEADER_KEPT_BYTES 4096

bool burial_keeps_whole(struct str key, struct str value, const struct headers *headers)
{
    return key.len + value.len + headers_bytes(headers) <= RECORD_MAX_BYTES - ADDED_MAX_BYTES;
}

static void cut(struct burial *b)
{
    struct headers *h = &b->headers;
    size_t kept = 0;
    char text[160];

    snprintf(text, sizeof(text),
             "too large to keep: a key of %zu bytes, a value of %zu, headers of %zu", b->key.len,
             b->value.len, headers_bytes(h));
    b->key = str_cut(b->key, KEY_KEPT_BYTES);
    b->value = str_cut(b->value, VALUE_KEPT_BYTES);
    for (size_t i = 0; i < h->n; i++)
        if (h->at[i].name.len + h->at[i].value.len <= HEADER_KEPT_BYTES)
            h->at[kept++] = h->at[i];
    h->n = kept;
    headers_leave_room(h, ADDED_MAX_HEADERS);
    headers_put_copy(h, "cut", str_of(text));
}

void burial_init(struct burial *b, struct str key, struct str value, const struct headers *headers)
{
    b->key = key;
    b->value = value;
    headers_copy(&b->headers, headers);
    headers_remove(&b->headers, "cut"); /* another's */
    if (!burial_keeps_whole(key, value, headers))
        cut(b);
    else
        headers_leave_room(&b->headers, ADDED_MAX_HEADERS);
}

void burial_explain(struct burial *b, const char *source_topic, const char *cls, const char *error,
                    int64_t now_ms)
{
    struct headers *h = &b->headers;

    headers_set(h, "source_topic", str_of(source_topic));
    headers_set(h, "class", str_of(cls));
    headers_set(h, "error", str_of(error));
    headers_set_i64(h, "parked_ms", now_ms);
}
