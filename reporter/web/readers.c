#include "readers.h"

#include <stdlib.h>
#include <utlist.h>

#include "../../common/base/mem.h"

void readers_init(struct readers *all)
{
    *all = (struct readers){ .clients.size = sizeof(struct client) };
}

void readers_clear(struct readers *all)
{
    table_clear(&all->clients);
}

struct reader *reader_new(struct readers *all, struct http_exchange *x)
{
    char address[HTTP_ADDRESS_SIZE];
    struct reader *r = mem_alloc(1, sizeof(*r));
    r->client = table_make(&all->clients, http_address(x, address));
    r->client->readers++;
    r->x = x;
    return r;
}

void reader_free(struct reader *r)
{
    for (size_t i = 0; i < r->n; i++)
        path_ask_clear(&r->of[i]);
    r->client->readers--;
    free(r);
}

/* ---- who asks -------------------------------------------------------------------------------- */

void readers_ask(struct readers *all, struct reader *r)
{
    struct reader *first;
    DL_FOREACH(all->asking, first)
    {
        if (str_eq(first->of[0].key, r->of[0].key)) {
            r->same = first->same;
            first->same = r;
            return;
        }
    }
    DL_APPEND(all->asking, r);
    all->n_asking++;
    r->client->asking++;
}

void readers_ask_end(struct readers *all, struct reader *r)
{
    struct reader *next = r->same;
    if (next) {
        DL_REPLACE_ELEM(all->asking, r, next);
        next->client->asking++;
    } else {
        DL_DELETE(all->asking, r);
        all->n_asking--;
    }
    r->client->asking--;
}

struct reader *readers_ask_take(struct readers *all)
{
    struct reader *r = all->asking;
    if (!r)
        return NULL;
    DL_DELETE(all->asking, r);
    all->n_asking--;
    r->client->asking--;
    return r;
}

/* ---- who waits ------------------------------------------------------------------------------- */

void readers_wait(struct readers *all, struct reader *r)
{
    DL_APPEND(all->waiting, r);
    all->n_waiting++;
    r->client->waiting++;
}

void readers_wait_end(struct readers *all, struct reader *r)
{
    DL_DELETE(all->waiting, r);
    all->n_waiting--;
    r->client->waiting--;
    reader_free(r);
}

struct reader *readers_wait_next(const struct readers *all, int64_t now_ms)
{
    struct reader *oldest = NULL, *r;
    DL_FOREACH(all->waiting, r)
    {
        if (now_ms >= r->client->rests_until_ms && (!oldest || r->seen_ms < oldest->seen_ms))
            oldest = r;
    }
    return oldest;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct reader *readers_crowd(const struct readers *all, struct reader *list)
{
    struct reader *found = NULL, *r;
    size_t most = 0;
    DL_FOREACH(list, r)
    {
        size_t n = list == all->asking ? r->client->asking : r->client->waiting;
        if (n < most || r == all->looked)
            continue;
        found = r;
        most = n;
    }
    return found;
}

void readers_tidy(struct readers *all, int64_t now_ms)
{
    for (struct client *c = table_next(&all->clients, NULL), *next; c; c = next) {
        next = table_next(&all->clients, c);
        if (!c->readers && c->rests_until_ms <= now_ms)
            table_remove(&all->clients, c);
    }
}
