/* The Retry-After header of an answer (RFC 9110 section 10.2.3): seconds, or a date. PURE. */
#ifndef CRCR_IO_RETRY_AFTER_H
#define CRCR_IO_RETRY_AFTER_H

#include "../base/headers.h"

/* Nobody is believed further than a day. */
#define RETRY_AFTER_MAX_S 86400

/* The moment until which to wait, in milliseconds since 1970; now_ms likewise. False, and *until_ms
 * untouched, when the header is absent or cannot be read. A date may be in the past. */
bool retry_after(const struct headers *headers, int64_t now_ms, int64_t *until_ms);

#endif
