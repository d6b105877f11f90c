/* What the jobs of each downstream came to, by the hour and by the day, in UTC (crcr:hours:*,
 * crcr:day:*), and what each delivery has added to that (crcr:tallied:*), so that a recount adds
 * only what differs (hours.lua). Each kind of run apart.
 *
 *   the fold marks <delivery>/<repo> in crcr:tally ─▶ sweep: jobs ─tally()─▶ lines ─▶ hours.lua */
#ifndef CRCR_VIEW_HOURS_H
#define CRCR_VIEW_HOURS_H

#include "../base/buf.h"
#include "../io/redis.h"
#include "../model/counted_runs.h"
#include "../model/figures.h"

#define HOUR_MS    3600000
#define DAY_HOURS  24
#define HOURS_DAYS 8  /* that hours are kept */
#define DAYS_KEPT  90 /* today among them, as above */

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends the lines of one hour (counted from 1970) and kind, in a fixed order. */
void hours_put(struct buf *to, int64_t hour, enum run_kind kind, const struct figures *f);

/* Lines of about 100 hours, ten times what the jobs of a delivery end in. One with more is not
 * counted: the step in Redis would take too long. */
#define HOURS_TEXT_MAX (64u << 10)
/* The lines that a delivery has added for a downstream; empty when none. to is reset first. */
enum err hours_tallied_get(struct redis *r, struct str delivery, struct str repo, struct buf *to,
                           struct why *why) MUST_CHECK;
/* One step: the lines before are taken off, the lines after are added and remembered for ttl_s.
 * *done false: another has replaced before meanwhile, and nothing was changed. Lines of hours and
 * days that are kept no longer are passed over. */
enum err hours_replace(struct redis *r, struct str delivery, struct str repo, struct str before,
                       struct str after, int64_t now_ms, int64_t ttl_s, bool *done,
                       struct why *why) MUST_CHECK;

/* ---- reading --------------------------------------------------------------------------------- */

struct hours_point {
    int64_t at_ms; /* when the hour or the day begins */
    struct figures of[RUN_KINDS];
};

/* The last n hours or days, oldest first, with nothing in them; the last is the one that now_ms
 * lies in. */
void hours_begin(bool by_hour, int64_t now_ms, size_t n, struct hours_point *to);
/* The same, with what a downstream did in them. */
enum err hours_read(struct redis *r, struct str repo, bool by_hour, int64_t now_ms, size_t n,
                    struct hours_point *to, struct why *why) MUST_CHECK;

#endif
