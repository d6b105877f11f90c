/* The last answer to each request of the JSON API, shared by all readers, with its digest. Limited
 * in bytes and in number: the one that was not asked for longest goes first. PURE (the owner
 * locks), but for page_new, page_hold, page_release and page_cache_held. */
#ifndef CRCR_REPORTER_WEB_PAGE_CACHE_H
#define CRCR_REPORTER_WEB_PAGE_CACHE_H

#include <stdatomic.h>

#include "../../common/base/str.h"

struct page_cache;

#define PAGE_ETAG_SIZE 33

/* One answer, with a count of references: while it is sent, its body is borrowed from here. */
struct page {
    atomic_size_t refs;
    atomic_size_t *held;       /* the counter of its bytes; NULL: the owner frees them */
    int status;                /* 200, 400, 404 or 503 */
    bool is_final;             /* what its path gives never changes */
    char etag[PAGE_ETAG_SIZE]; /* of the body, in hex */
    int64_t at_ms;             /* when it was rendered last, monotonic clock */
    struct str body;
    struct str gzip; /* the same, compressed; absent where that gains nothing */
};

struct page_cache *page_cache_new(size_t max_bytes, size_t max_pages);
/* NULL is fine. All its pages must have been released. */
void page_cache_free(struct page_cache *c);
/* Has one reference; computes the digest, and compresses. When old (may be NULL) has the same
 * status and body, it is old itself, with a reference more. Takes over body.ptr (malloc'ed). */
struct page *page_new(struct page_cache *c, struct page *old, int status, struct str body);
struct page *page_hold(struct page *page);
void page_release(void *page); /* as http_reply_lent wants it */
/* The bytes of all pages that are referenced, by the cache or by a reader. */
size_t page_cache_held(const struct page_cache *c);
/* Adds a reference to the page, under a copy of key; replaces an older page of that key. A page
 * that is larger than the cache is not kept. */
void page_cache_put(struct page_cache *c, struct str key, struct page *page);
/* The page of that key, borrowed until the next put; NULL: there is none. */
struct page *page_cache_get(struct page_cache *c, struct str key);

/* The digest that names a body. */
void page_etag(char to[PAGE_ETAG_SIZE], struct str body);
/* Whether known contains that etag. known: If-None-Match (RFC 9110 section 13.1.2), with quotes,
 * several, or marked weak by a proxy that compresses; or the bare digests of Last-Event-ID. */
bool page_is_known(const char *etag, struct str known);

#endif
