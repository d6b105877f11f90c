/* What several parts of the view write in the same way. */
#ifndef CRCR_VIEW_ENTRIES_H
#define CRCR_VIEW_ENTRIES_H

#include "jobs.h"

/* The reply to a fold whose merged record is of no interest. */
enum err view_fold_collect(struct redis *r, struct why *why) MUST_CHECK;
/* Sets a field of a hash, which then expires when times says. Both commands leave in one write, so
 * that a crash leaves no key without an end. */
enum err view_field_put(struct redis *r, struct str key, struct str field, struct str value,
                        const struct view_times *times, struct why *why) MUST_CHECK;

#endif
