/* The bytes of a JSON text: what yajl lets pass, and RFC 8259 or our rules do not. PURE. */
#ifndef CRCR_MODEL_JSON_BYTES_H
#define CRCR_MODEL_JSON_BYTES_H

#include "../base/err.h"
#include "../base/str.h"

#define JSON_NUL_REASON "NUL in a string"

/* Refuses invalid UTF-8 (RFC 3629: also overlong forms and encoded surrogates), raw control
 * characters, and escaped NUL and halves of a surrogate pair unless they are allowed. *has_nul is
 * set when there is one. ERR_REFUSE with the byte offset. */
enum err json_bytes_check(struct str text, bool escaped_nul, bool *has_nul,
                          struct why *why) MUST_CHECK;

#endif
