/* What was last answered to each request of the JSON API, shared by all readers, with the digest
 * that names it. Bounded by bytes and by number: what nobody has asked for longest goes first.
 * PURE: the owner locks. */
#ifndef CRCR_REPORTER_WEB_PAGE_CACHE_H
#define CRCR_REPORTER_WEB_PAGE_CACHE_H

#include "../../common/base/str.h"

struct page_cache;

#define PAGE_ETAG_SIZE 33

/* One answer. */
struct page {
    int status;                /* 200, 404 or 503 */
    char etag[PAGE_ETAG_SIZE]; /* of the body, in hex */
    int64_t at_ms;             /* when it was rendered, monotonic clock */
    struct str body;           /* in a cache: malloc'ed */
};

struct page_cache *page_cache_new(size_t max_bytes, size_t max_pages);
/* NULL is fine. */
void page_cache_free(struct page_cache *c);
/* Takes the page's body over, under a key that is copied, in the place of an older one of that key.
 * One that is larger than the whole cache is not kept. */
void page_cache_put(struct page_cache *c, struct str key, const struct page *page);
/* The one of that key, borrowed until the next put; NULL when there is none. */
const struct page *page_cache_get(struct page_cache *c, struct str key);

/* The digest that names a body. */
void page_etag(char to[PAGE_ETAG_SIZE], struct str body);
/* True when known names that etag: it may be If-None-Match (RFC 9110 section 13.1.2), with quotes,
 * several, or marked weak by a proxy that compresses; or the bare digests of Last-Event-ID. */
bool page_is_known(const char *etag, struct str known);

#endif
