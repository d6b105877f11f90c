/* Webhooks that were set up with content type application/x-www-form-urlencoded: the JSON is in the
 * field "payload". PURE. */
#ifndef CRCR_INGEST_FORM_H
#define CRCR_INGEST_FORM_H

#include "../common/base/err.h"
#include "../common/base/str.h"

/* True when a Content-Type header says that the body is a form; parameters are ignored. */
bool form_is(struct str content_type);
/* The decoded payload as a malloc'ed block, the caller's. ERR_REFUSE: there is no payload, more
 * than one, or a % without two hex digits. ERR_RETRY: no memory. */
enum err form_payload(struct str body, char **ret, size_t *len, struct why *why) MUST_CHECK;

#endif
