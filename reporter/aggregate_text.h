/* What people read in the aggregate check run. As in check_text.h nothing that a downstream chose
 * can format, link or mention. PURE. */
#ifndef CRCR_REPORTER_AGGREGATE_TEXT_H
#define CRCR_REPORTER_AGGREGATE_TEXT_H

#include "aggregate.h"

/* "In progress: 3 of 5 jobs ended, 1 not well". The caller's. */
char *aggregate_title(const struct aggregate *a, const struct aggregate_view *view);
/* Begins with the marker; says why it is as it is, then each job, worst first. At most
 * CHECK_SUMMARY_MAX bytes: jobs that do not fit are counted. It has no time of now in it, so that
 * it changes only when something happened. The caller's. */
char *aggregate_summary(const struct aggregate *a, const struct aggregate_view *view,
                        const char *marker);

#endif
