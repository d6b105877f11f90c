/* Private to json_scan: what yajl lets pass and RFC 8259 or our rules do not. PURE. */
#ifndef CRCR_MODEL_JSON_BYTES_H
#define CRCR_MODEL_JSON_BYTES_H

#include "../base/err.h"
#include "../base/str.h"

/* Refuses invalid UTF-8 (RFC 3629: also overlong forms and encoded surrogates), raw NUL, escaped
 * NUL unless it is allowed, other raw control characters, and \u escapes of half a surrogate pair.
 * ERR_REFUSE with the byte offset. */
enum err json_bytes_check(struct str text, bool escaped_nul, struct why *why) MUST_CHECK;

#endif
