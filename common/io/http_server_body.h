/* All request bodies in hand together, at most max_bytes (CRCR_MAX_INFLIGHT_BYTES).
 *
 * Only bytes that have come are counted: a dozen clients that announce 25 MiB each and send nothing
 * must not lock out everybody else. Bodies over 1 MiB leave a quarter to smaller ones: an
 * attacker's large bodies refuse no honest webhook. */
#ifndef CRCR_IO_HTTP_SERVER_BODY_H
#define CRCR_IO_HTTP_SERVER_BODY_H

#include <stdatomic.h>
#include <stddef.h>

#include "../base/err.h"

struct http_inflight {
    size_t max_bytes; /* 0: no limit */
    atomic_size_t bytes;
};

/* One body; its block grows as the bytes come. All 0 but the two limits at first. */
struct http_body {
    size_t max;       /* more is refused */
    size_t announced; /* by Content-Length; 0: not */
    char *ptr; /* malloc'ed, NUL-terminated for the convenience of parsers; NULL: nothing came */
    size_t len;
    size_t room; /* without the NUL; so much is counted, also after http_body_take */
};

/* Appends. ERR_REFUSE: over the body's limit. ERR_RETRY: too much in hand in all, or no memory. The
 * body is unchanged then. */
enum err http_body_add(struct http_body *b, struct http_inflight *all, const char *data,
                       size_t len) MUST_CHECK;
/* The block is the caller's from now on. It stays counted until http_body_clear: the bytes are
 * still in hand. */
char *http_body_take(struct http_body *b, size_t *len);
/* Frees the block and counts it no more. */
void http_body_clear(struct http_body *b, struct http_inflight *all);

#endif
