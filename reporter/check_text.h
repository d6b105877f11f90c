/* What people read in a check run, of a job or the aggregate: title and summary (Markdown).
 * Everything that a downstream chose is written so that it can neither format, link nor mention
 * anyone. PURE. */
#ifndef CRCR_REPORTER_CHECK_TEXT_H
#define CRCR_REPORTER_CHECK_TEXT_H

#include "aggregate.h"

#define CHECK_SUMMARY_MAX 65535 /* GitHub counts characters; we count bytes, which are no fewer */

/* "Success: 118 passed, 2 skipped". conclusion NULL: still running. The caller's. */
char *check_title(const struct result_record *job, const char *conclusion);
/* Begins with the marker. At most CHECK_SUMMARY_MAX bytes: failed tests that do not fit are
 * counted. The caller's. */
char *check_summary(const struct result_record *job, const char *marker);

/* "In progress: 3 of 5 jobs ended, 1 not well". The caller's. */
char *aggregate_title(const struct aggregate *a, const struct aggregate_view *view);
/* Begins with the marker; says why it is as it is, then each job, worst first. At most
 * CHECK_SUMMARY_MAX bytes: jobs that do not fit are counted. It has no time of now in it, so that
 * it changes only when something happened. The caller's. */
char *aggregate_summary(const struct aggregate *a, const struct aggregate_view *view,
                        const char *marker);

/* ---- parts, also for wanted_check.c and oncall.c ---- */

/* In <code>, cut to max bytes: letters, digits and what is not ASCII as they are; every mark as a
 * character reference, which Markdown never takes for a mark of its own. Inside <code> GitHub looks
 * for no mentions. */
void check_put_code(struct buf *to, struct str text, size_t max);
/* Appends why a failure is known, between marks. The digests pass over the sentence, but not over
 * the reason: its figures change with each report of another job, and are not worth a call. */
void check_put_known(struct buf *to, const struct known_failure *known);
/* Appends the row and clears it. False, and nothing is appended: to would pass max bytes. */
bool check_put_row(struct buf *to, struct buf *row, size_t max);
/* http or https, and no character that would end a Markdown link or an attribute. */
bool url_is_plain(struct str url);

/* FNV-1a, 64 bits: two texts differ in it, nothing more. Begins with DIGEST_START. */
#define DIGEST_START 0xcbf29ce484222325u
uint64_t digest_add(uint64_t digest, struct str text);
/* The same of a text with what check_put_known wrote. */
uint64_t digest_add_text(uint64_t digest, struct str text);

#endif
