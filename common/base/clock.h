/* Only this module reads the clock. PURE modules get the time as an argument. */
#ifndef CRCR_BASE_CLOCK_H
#define CRCR_BASE_CLOCK_H

#include <stdint.h>

#include "err.h"
#include "str.h"

/* Milliseconds since 1970-01-01T00:00:00Z. */
int64_t clock_wall_ms(void);
/* Milliseconds on a clock that never goes back, for time-outs. */
int64_t clock_mono_ms(void);
/* The same, but the time in which the machine was suspended counts (CLOCK_BOOTTIME, time(7)): for
 * what others may have done meanwhile. */
int64_t clock_boot_ms(void);
/* As clock_mono_ms, in microseconds, for latencies. */
int64_t clock_mono_us(void);

/* RFC 3339 in UTC with milliseconds ("2026-11-21T03:20:00.000Z"); to holds CLOCK_TEXT_SIZE bytes.
 */
#define CLOCK_TEXT_SIZE 32
void clock_format(int64_t wall_ms, char to[CLOCK_TEXT_SIZE]);
/* RFC 3339 section 5.6 date-time, with Z or an offset, fraction optional. */
enum err clock_parse(struct str text, int64_t *wall_ms, struct why *why) MUST_CHECK;

#endif
