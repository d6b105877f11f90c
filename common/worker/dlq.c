#include "dlq.h"

#include <stdio.h>

#include "../model/limits.h"

/* What we add, and the protocol: some 10 bytes a header, 100 in all. */
#define ADDED_MAX_BYTES   4096
#define ADDED_MAX_HEADERS 5 /* source_topic, class, error, parked_ms; cut */
/* Of one that is cut. */
#define KEY_KEPT_BYTES    1024
#define VALUE_KEPT_BYTES  65536
#define HEADER_KEPT_BYTES 4096

bool dlq_fits(struct str key, struct str value, const struct headers *headers)
{
    return key.len + value.len + headers_bytes(headers) <= RECORD_MAX_BYTES - ADDED_MAX_BYTES;
}

static void cut(struct dlq_record *d)
{
    struct headers *h = &d->headers;
    size_t kept = 0;
    char text[160];
    snprintf(text, sizeof(text),
             "too large to keep: a key of %zu bytes, a value of %zu, headers of %zu", d->key.len,
             d->value.len, headers_bytes(h));
    d->key = str_cut(d->key, KEY_KEPT_BYTES);
    d->value = str_cut(d->value, VALUE_KEPT_BYTES);
    for (size_t i = 0; i < h->n; i++)
        if (h->at[i].name.len + h->at[i].value.len <= HEADER_KEPT_BYTES)
            h->at[kept++] = h->at[i];
    h->n = kept;
    headers_leave_room(h, ADDED_MAX_HEADERS);
    headers_put_copy(h, "cut", str_of(text));
}

void dlq_record_init(struct dlq_record *d, const struct record *from, const struct headers *headers,
                     const char *class, const char *error, int64_t now_ms)
{
    struct headers *h = &d->headers;
    d->key = from->key;
    d->value = from->value;
    headers_copy(h, headers);
    headers_remove(h, "cut"); /* another's */
    headers_leave_room(h, ADDED_MAX_HEADERS);
    if (!dlq_fits(from->key, from->value, headers))
        cut(d);
    headers_set(h, "source_topic", str_of(from->at.topic));
    headers_set(h, "class", str_of(class));
    headers_set(h, "error", str_of(error));
    headers_set_i64(h, "parked_ms", now_ms);
}
