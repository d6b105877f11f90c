/* URLs of the configuration as they may be seen. */
#ifndef CRCR_BASE_URL_H
#define CRCR_BASE_URL_H

#include "str.h"

/* Writes scheme://host[:port]/path to `to`, without user information (RFC 3986 section 3.2.1),
 * query and fragment: these may hold a secret. All that is logged, stored or shown of a configured
 * URL comes from here. A text that is no URL is cut in the same way. What does not fit in size
 * (with its NUL) is cut off. Gives `to`, as text. PURE. */
struct str url_shown(char *to, size_t size, struct str url);

#endif
