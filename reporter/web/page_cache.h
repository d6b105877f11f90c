/* What was last answered to each request of the JSON API, shared by all readers, with the digest
 * that names it. Bounded by bytes and by number: what nobody has asked for longest goes first.
 * PURE: the owner locks; but for page_hold, page_release and page_cache_held. */
#ifndef CRCR_REPORTER_WEB_PAGE_CACHE_H
#define CRCR_REPORTER_WEB_PAGE_CACHE_H

#include <stdatomic.h>

#include "../../common/base/str.h"

struct page_cache;

#define PAGE_ETAG_SIZE 33

/* One answer, counted: while it is sent it is borrowed from here. */
struct page {
    atomic_size_t refs;
    atomic_size_t *held;       /* where its bytes are counted; NULL: its body is static */
    int status;                /* 200, 400, 404 or 503 */
    char etag[PAGE_ETAG_SIZE]; /* of the body, in hex */
    int64_t at_ms;             /* when it was rendered, monotonic clock */
    struct str body;
};

struct page_cache *page_cache_new(size_t max_bytes, size_t max_pages);
/* NULL is fine. All its pages must have been released. */
void page_cache_free(struct page_cache *c);
/* With one reference, and the digest; body.ptr, malloc'ed, is taken over. */
struct page *page_new(struct page_cache *c, int status, struct str body, int64_t at_ms);
struct page *page_hold(struct page *page);
void page_release(void *page); /* as http_reply_lent wants it */
/* The bytes of all pages that somebody holds: the cache, or who reads one. */
size_t page_cache_held(const struct page_cache *c);
/* Holds the page, too, under a key that is copied, in the place of an older one of that key. One
 * that is larger than the whole cache is not kept. */
void page_cache_put(struct page_cache *c, struct str key, struct page *page);
/* The one of that key, borrowed until the next put; NULL when there is none. */
struct page *page_cache_get(struct page_cache *c, struct str key);

/* The digest that names a body. */
void page_etag(char to[PAGE_ETAG_SIZE], struct str body);
/* True when known names that etag: it may be If-None-Match (RFC 9110 section 13.1.2), with quotes,
 * several, or marked weak by a proxy that compresses; or the bare digests of Last-Event-ID. */
bool page_is_known(const char *etag, struct str known);

#endif
