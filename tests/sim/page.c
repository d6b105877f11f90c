#include "page.h"

#include <jansson.h>

#include "../../common/base/buf.h"
#include "../../common/io/http_client.h"

#define PAGE_MAX 1000000

/* The query of the call with another page number, for a Link. */
static void link_put(struct buf *to, const char *base, const struct call *call, int64_t page,
                     const char *rel)
{
    buf_printf(to, "%s<%s%.*s?", to->len ? ", " : "", base, STR_ARG(call->path));
    for (size_t i = 0; i < call->query->n; i++) {
        const struct header *h = &call->query->at[i];

        if (str_is(h->name, "page"))
            continue;
        buf_put(to, h->name);
        buf_putc(to, '=');
        http_encode(to, h->value);
        buf_putc(to, '&');
    }
    buf_printf(to, "page=%lld>; rel=\"%s\"", (long long)page, rel);
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

json_t *page_take(const char *base, const struct call *call, const json_t *all, struct reply *reply)
{
    int64_t per_page = within(call_query(call, "per_page", 30), 1, 100);
    int64_t page = within(call_query(call, "page", 1), 1, PAGE_MAX);
    int64_t n = (int64_t)json_array_size(all);
    json_t *list = json_array();
    struct buf links;

    for (int64_t i = (page - 1) * per_page; i < page * per_page && i < n; i++)
        json_array_append(list, json_array_get(all, (size_t)i));
    if (page * per_page >= n)
        return list;
    buf_init(&links, 1000);
    link_put(&links, base, call, page + 1, "next");
    link_put(&links, base, call, (n + per_page - 1) / per_page, "last");
    reply_header(reply, "Link", "%s", links.ptr);
    buf_clear(&links);
    return list;
}
