/* Writing JSON strings (RFC 8259 section 7) without building a document. */
#ifndef CRCR_BASE_JSON_TEXT_H
#define CRCR_BASE_JSON_TEXT_H

#include "buf.h"

/* Appends s as a JSON string with its quotes. Controls are escaped; bytes that are not UTF-8 become
 * U+FFFD, so the result is always valid JSON. An absent s is written as null. */
void json_text_put(struct buf *to, struct str s);
/* The length of the UTF-8 character that s begins with (RFC 3629: shortest form, no surrogates), or
 * 0 when the bytes are none. */
size_t json_text_utf8(struct str s);

#endif
