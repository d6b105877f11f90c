/* Fits a webhook body into what repository_dispatch takes (client_payload < 64 KB). PURE. */
#ifndef CRCR_GITHUB_PAYLOAD_FIT_H
#define CRCR_GITHUB_PAYLOAD_FIT_H

#include "../base/buf.h"

/* Escaped NUL and halves of a surrogate pair go first: GitHub refuses them, and a callback that
 * echoes them would be. Appends body otherwise unchanged when it has at most max_bytes; else drops,
 * in a fixed order, _links and *_url API links, then long bodies (cut with a marker), then
 * repository and user objects down to id, name, html_url; never the fields downstream workflows
 * read. trimmed gets a JSON array of what went (empty text when nothing did). ERR_REFUSE: not JSON,
 * or cannot be made to fit. */
enum err payload_fit(struct str body, size_t max_bytes, struct buf *to, struct buf *trimmed,
                     struct why *why) MUST_CHECK;

#endif
