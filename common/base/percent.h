/* Percent-encoding (RFC 3986 section 2.1), taken off. PURE. */
#ifndef CRCR_BASE_PERCENT_H
#define CRCR_BASE_PERCENT_H

#include "str.h"

/* Decodes text into to, which has room for text.len bytes, and gives what is there; absent when a
 * percent sign has no two hex digits behind it. form: a plus is a blank, as in a form or a query
 * (WHATWG URL, application/x-www-form-urlencoded). */
struct str percent_decode(struct str text, bool form, char *to);

#endif
