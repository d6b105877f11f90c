/* Paging as GitHub does it: per_page (at most 100), page, and the Link header. */
#ifndef CRCR_SIM_PAGE_H
#define CRCR_SIM_PAGE_H

#include "call.h"

/* The page of all that the call asks for, the caller's; sets Link on the reply when there are
 * further pages. */
json_t *page_take(const char *base, const struct call *call, const json_t *all,
                  struct reply *reply);

#endif
