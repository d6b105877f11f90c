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

/* http or https, and no character that would end a Markdown link or an attribute. */
bool url_is_plain(struct str url);

#endif
