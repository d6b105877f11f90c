/* Writing JSON strings (RFC 8259 section 7) without building a document. */
#ifndef CRCR_BASE_JSON_TEXT_H
#define CRCR_BASE_JSON_TEXT_H

#include <string.h>

#include "buf.h"

/* Appends s as a JSON string with its quotes. Controls are escaped; bytes that are not UTF-8 become
 * U+FFFD, so the result is always valid JSON. An absent s is written as null. */
void json_text_put(struct buf *to, struct str s);
/* The length of the UTF-8 character that s begins with (RFC 3629: shortest form, no surrogates), or
 * 0 when the bytes are none. */
size_t json_text_utf8(struct str s);
/* How many bytes s begins with that a JSON string holds as they are: printable ASCII but the quote
 * and the backslash. It stops at the first that is not. */
static inline size_t json_text_plain(struct str s)
{
    typedef signed char chunk __attribute__((vector_size(16)));
    typedef unsigned char bytes __attribute__((vector_size(16)));
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");
    size_t n = 0;
    for (; s.len - n >= sizeof(chunk); n += sizeof(chunk)) {
        bytes x;
        uint64_t halves[2]; /* a byte is 0xff, or 0 where it stops */
        memcpy(&x, s.ptr + n, sizeof(x));
        /* DEL and one is negative, as all that is not ASCII is. */
        chunk plain = ((chunk)(x + 1) > ' ') ^ ((x == '"') | (x == '\\'));
        memcpy(halves, &plain, sizeof(plain));
        if (~halves[0])
            return n + (size_t)__builtin_ctzll(~halves[0]) / 8;
        if (~halves[1])
            return n + 8 + (size_t)__builtin_ctzll(~halves[1]) / 8;
    }
    while (n < s.len && s.ptr[n] >= ' ' && s.ptr[n] < 0x7f && s.ptr[n] != '"' && s.ptr[n] != '\\')
        n++;
    return n;
}

#endif
