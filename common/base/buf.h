/* A growing byte buffer with a mandatory maximum. The content is always followed by a NUL that is
 * not counted. Once an append would pass the maximum the buffer is marked full, keeps what it had
 * and refuses everything after: check once at the end with buf_full(). */
#ifndef CRCR_BASE_BUF_H
#define CRCR_BASE_BUF_H

#include "err.h"
#include "str.h"

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max; /* bytes of content */
    bool full;
};

/* An empty buffer for at most max bytes; allocates nothing. */
void buf_init(struct buf *b, size_t max);
/* The same where it is declared: struct buf CLEANUP(buf_clear) text = BUF_INIT(4096). */
#define BUF_INIT(most) ((struct buf){ .max = (most) })
/* Frees the content and leaves an empty, usable buffer. Takes NULL-content buffers. */
void buf_clear(struct buf *b);
/* Forgets the content, keeps the memory. */
void buf_reset(struct buf *b);
void buf_put(struct buf *b, struct str s);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
/* In decimal. */
void buf_put_number(struct buf *b, int64_t n);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
bool buf_full(const struct buf *b);
/* What is in the buffer, borrowed until the next change. Never absent. */
struct str buf_str(const struct buf *b);
/* The content as a NUL-terminated malloc'ed block, the caller's; the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *len);

#endif
