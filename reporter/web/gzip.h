/* Bodies of HTTP as gzip (RFC 1952), by zlib. PURE. */
#ifndef CRCR_REPORTER_WEB_GZIP_H
#define CRCR_REPORTER_WEB_GZIP_H

#include "../../common/base/str.h"

/* The body compressed, in a malloc'ed block that is the caller's. */
struct str gzip_pack(struct str body);
/* The other way; packed is what gzip_pack or the program gzip wrote, never from outside. */
struct str gzip_unpack(struct str packed);
/* Whether an answer may be sent so, by the request's Accept-Encoding (RFC 9110 section 12.5.3).
 * Without one: no, as most who send none cannot read it. */
bool gzip_accepted(struct str accept_encoding);

#endif
