/* The answer of GET /github/whoami: what a token proves, and what the relay does with its reports.
 * PURE. */
#ifndef CRCR_INGEST_WHOAMI_H
#define CRCR_INGEST_WHOAMI_H

#include "../common/base/buf.h"
#include "../common/model/allowlist.h"

struct whoami {
    struct str repo;      /* that the token speaks for */
    struct str issuer;    /* of the token */
    const char *audience; /* that tokens must name */
    const char *provider; /* of the providers file; NULL: its claim repository counts */
    const struct allowlist_entry *entry; /* NULL: not listed */
    const char *public_url;              /* of the pages; NULL: not known */
};

/* Appends a JSON object. */
void whoami_put(struct buf *to, const struct whoami *w);

#endif
