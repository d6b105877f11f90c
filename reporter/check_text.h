/* What people read in a check run: title and summary (Markdown). Everything that a downstream chose
 * is written so that it can neither format, link nor mention anyone. PURE. */
#ifndef CRCR_REPORTER_CHECK_TEXT_H
#define CRCR_REPORTER_CHECK_TEXT_H

#include "../common/model/result_record.h"

#define CHECK_SUMMARY_MAX 65535 /* GitHub counts characters; we count bytes, which are no fewer */

/* "Success: 118 passed, 2 skipped". conclusion NULL: still running. The caller's. */
char *check_title(const struct result_record *job, const char *conclusion);
/* Begins with the marker. At most CHECK_SUMMARY_MAX bytes: failed tests that do not fit are
 * counted. The caller's. */
char *check_summary(const struct result_record *job, const char *marker);

/* ---- parts, also for aggregate_text.c ---- */

/* In <code>, cut to max bytes: letters, digits and what is not ASCII as they are; every mark as a
 * character reference, which Markdown never takes for a mark of its own. Inside <code> GitHub looks
 * for no mentions. */
void check_put_code(struct buf *to, struct str text, size_t max);
/* "timed_out" as "Timed out". */
void check_put_capitalised(struct buf *to, const char *name);
/* "<separator>3 failed", unless n is 0 or unknown; the next separator is a comma. */
void check_put_count(struct buf *to, const char **separator, int64_t n, const char *what);
/* "<separator>[what](<url>)", unless the URL is none or not plain; the next separator is a dot. */
void check_put_link(struct buf *to, const char **separator, const char *what, const char *url);
/* http or https, and no character that would end a Markdown link or an attribute. */
bool url_is_plain(struct str url);

#endif
