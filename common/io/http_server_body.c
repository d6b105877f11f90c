#include "http_server_body.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096, FIRST_ROOM_ANNOUNCED = 64 * 1024, SMALL_BODY = 1 << 20 };

static size_t room_for(const struct http_body *b, size_t need)
{
    size_t max = b->announced ? b->announced : b->max;
    size_t room = b->room ? b->room * 2 : b->announced ? FIRST_ROOM_ANNOUNCED : FIRST_ROOM;
    if (room > max)
        room = max;
    return room > need ? room : need;
}

/* Sizes come from outside: plain realloc, and a polite refusal when there is no memory. */
static enum err grow(struct http_body *b, struct http_inflight *all, size_t room)
{
    size_t more = room - b->room;
    size_t max = room <= SMALL_BODY ? all->max_bytes : all->max_bytes / 4 * 3;
    bool fits = atomic_fetch_add(&all->bytes, more) + more <= max || !all->max_bytes;
    char *ptr = fits ? realloc(b->ptr, room + 1) : NULL;
    if (!ptr) {
        atomic_fetch_sub(&all->bytes, more);
        return ERR_RETRY;
    }
    b->ptr = ptr;
    b->room = room;
    return OK;
}

enum err http_body_add(struct http_body *b, struct http_inflight *all, const char *data, size_t len)
{
    size_t need = b->len + len;
    if (need > b->max)
        return ERR_REFUSE;
    if (need > b->room) {
        enum err err = grow(b, all, room_for(b, need));
        if (err)
            return err;
    }
    memcpy(b->ptr + b->len, data, len);
    b->len = need;
    b->ptr[need] = '\0';
    return OK;
}

char *http_body_take(struct http_body *b, size_t *len)
{
    char *ptr = b->ptr ? b->ptr : calloc(1, 1);
    *len = b->len;
    b->ptr = NULL;
    b->len = 0;
    return ptr;
}

void http_body_clear(struct http_body *b, struct http_inflight *all)
{
    free(b->ptr);
    atomic_fetch_sub(&all->bytes, b->room);
    b->ptr = NULL;
    b->len = b->room = 0;
}
