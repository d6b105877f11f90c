#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

enum { FIRST_CAP = 256 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2 }; /* + 1 cannot overflow */
}

void buf_clear(struct buf *b)
{
    free(b->ptr);
    buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->full = false;
    if (b->ptr)
        b->ptr[0] = '\0';
}

/* For need bytes. The size is chosen by outsiders, so no memory is no reason to abort: the buffer
 * is full then. */
static bool grow(struct buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : FIRST_CAP;
    while (cap < need)
        cap *= 2;
    if (cap > b->max + 1)
        cap = b->max + 1;
    char *bigger = realloc(b->ptr, cap);
    if (!bigger) {
        b->full = true;
        return false;
    }
    b->ptr = bigger;
    b->cap = cap;
    return true;
}

/* Room for n more bytes and the NUL. */
static inline bool reserve(struct buf *b, size_t n)
{
    if (b->full || n > b->max - b->len) {
        b->full = true;
        return false;
    }
    return b->len + n < b->cap || grow(b, b->len + n + 1);
}

void buf_put(struct buf *b, struct str s)
{
    if (s.len == 0 || !reserve(b, s.len))
        return;
    memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
    buf_put(b, str_of(text));
}

void buf_putc(struct buf *b, char c)
{
    if (!reserve(b, 1))
        return;
    b->ptr[b->len++] = c;
    b->ptr[b->len] = '\0';
}

void buf_put_number(struct buf *b, int64_t n)
{
    buf_put(b, STR_NUMBER(n));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n <= 0 || !reserve(b, (size_t)n))
        return;
    va_start(args, format);
    vsnprintf(b->ptr + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
}

bool buf_full(const struct buf *b)
{
    return b->full;
}

struct str buf_str(const struct buf *b)
{
    return (struct str){ b->ptr ? b->ptr : "", b->len };
}

char *buf_take(struct buf *b, size_t *len)
{
    char *block = b->ptr ? b->ptr : mem_alloc(1, 1);
    if (len)
        *len = b->len;
    buf_init(b, b->max);
    return block;
}
