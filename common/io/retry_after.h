/* The Retry-After header of an answer (RFC 9110 section 10.2.3): seconds, or a date. PURE. */
#ifndef CRCR_IO_RETRY_AFTER_H
#define CRCR_IO_RETRY_AFTER_H

#include "../base/headers.h"

/* Longer waits than a day count as a day. */
#define RETRY_AFTER_MAX_S 86400

/* *until_ms: until when to wait, in ms since 1970, as now_ms. False, and *until_ms untouched: the
 * header is absent or malformed. A date may be in the past. */
bool retry_after(const struct headers *headers, int64_t now_ms, int64_t *until_ms);

#endif
