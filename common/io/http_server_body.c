#include <stdlib.h>
#include <string.h>

#include "http_server_inner.h"

/* Only bytes that have come are counted: a dozen clients that promise 25 MiB each and send nothing
 * must not lock out everybody else. The block grows with them. What has more than SMALL_BODY leaves
 * a quarter of the account to what has less: an attacker's large bodies cost no honest webhook its
 * place. */
enum { FIRST_ROOM = 4096, FIRST_ROOM_ANNOUNCED = 64 * 1024, SMALL_BODY = 1 << 20 };

/* Counts more bytes of a body as in hand; false when that would be too many. */
static bool account(struct http_server *s, size_t more, bool small)
{
    size_t max = small ? s->max_inflight_bytes : s->max_inflight_bytes / 4 * 3;
    size_t before = atomic_fetch_add(&s->inflight_bytes, more);
    if (!s->max_inflight_bytes || before + more <= max)
        return true;
    atomic_fetch_sub(&s->inflight_bytes, more);
    return false;
}

/* Sizes come from outside: plain malloc, and a polite refusal when there is no memory. */
static enum err resize(struct http_exchange *x, size_t room)
{
    if (!account(x->server, room - x->body_room, room <= SMALL_BODY))
        return ERR_RETRY;
    char *body = realloc(x->body, room + 1);
    if (!body) {
        atomic_fetch_sub(&x->server->inflight_bytes, room - x->body_room);
        return ERR_RETRY;
    }
    x->body = body;
    x->body_room = room;
    return OK;
}

/* How large the block should be in which so many bytes must find room. */
static size_t room_for(const struct http_exchange *x, size_t need)
{
    size_t max = x->body_announced ? x->body_announced : x->route->max_body_bytes;
    size_t room = x->body_room * 2;
    if (room == 0)
        room = x->body_announced ? FIRST_ROOM_ANNOUNCED : FIRST_ROOM;
    if (room > max)
        room = max;
    return room > need ? room : need;
}

enum err exchange_body_expect(struct http_exchange *x)
{
    uint64_t declared;
    /* Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3). */
    if (http_header(x, "Transfer-Encoding").ptr ||
        !str_to_u64(http_header(x, "Content-Length"), &declared) || declared == 0)
        return OK;
    if (declared > x->route->max_body_bytes)
        return ERR_REFUSE;
    x->body_announced = declared;
    return OK;
}

enum err exchange_body_add(struct http_exchange *x, const char *data, size_t len)
{
    size_t need = x->body_len + len;
    if (need > x->route->max_body_bytes)
        return ERR_REFUSE;
    if (need > x->body_room) {
        enum err err = resize(x, room_for(x, need));
        if (err)
            return err;
    }
    memcpy(x->body + x->body_len, data, len);
    x->body_len = need;
    x->body[need] = '\0';
    return OK;
}

void exchange_body_drop(struct http_exchange *x)
{
    free(x->body);
    atomic_fetch_sub(&x->server->inflight_bytes, x->body_room);
    x->body = NULL;
    x->body_len = 0;
    x->body_room = 0;
}

struct str http_body(const struct http_exchange *x)
{
    return (struct str){ x->body ? x->body : "", x->body_len };
}

/* The bytes stay in the account until the reply: they are still in hand, only in other hands. */
char *http_take_body(struct http_exchange *x, size_t *len)
{
    char *body = x->body ? x->body : calloc(1, 1);
    *len = x->body_len;
    x->body = NULL;
    x->body_len = 0;
    return body;
}
