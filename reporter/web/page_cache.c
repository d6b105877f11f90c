#include "page_cache.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(message) abort() /* no memory: as mem.h says */
#include <uthash.h>

#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "gzip.h"

#define GZIP_FROM_BYTES 1000 /* less is one packet of the network anyway */

struct entry {
    struct page *page;
    UT_hash_handle hh; /* in the order of their last use */
    char key[];
};

struct page_cache {
    struct entry *entries;
    size_t bytes, max_bytes, max_pages;
    atomic_size_t held;
};

struct page_cache *page_cache_new(size_t max_bytes, size_t max_pages)
{
    struct page_cache *c = mem_alloc(1, sizeof(*c));
    *c = (struct page_cache){ .max_bytes = max_bytes, .max_pages = max_pages };
    return c;
}

static size_t bytes_of(const struct page *page)
{
    return page->body.len + page->gzip.len;
}

struct page *page_new(struct page_cache *c, struct page *old, int status, struct str body)
{
    struct page *page = mem_alloc(1, sizeof(*page));
    *page = (struct page){ .refs = 1, .held = &c->held, .status = status };
    page_etag(page->etag, body);
    if (old && old->status == status && strcmp(old->etag, page->etag) == 0) {
        free((char *)(uintptr_t)body.ptr);
        free(page);
        return page_hold(old);
    }
    body.ptr = mem_resize((char *)(uintptr_t)body.ptr, body.len + 1, 1); /* it grew by doubling */
    page->body = body;
    if (status != 503 && body.len >= GZIP_FROM_BYTES)
        page->gzip = gzip_pack(body);
    atomic_fetch_add(&c->held, bytes_of(page));
    return page;
}

struct page *page_hold(struct page *page)
{
    atomic_fetch_add(&page->refs, 1);
    return page;
}

void page_release(void *opaque)
{
    struct page *page = opaque;
    if (atomic_fetch_sub(&page->refs, 1) > 1 || !page->held)
        return;
    atomic_fetch_sub(page->held, bytes_of(page));
    free((char *)(uintptr_t)page->body.ptr);
    free((char *)(uintptr_t)page->gzip.ptr);
    free(page);
}

size_t page_cache_held(const struct page_cache *c)
{
    return atomic_load(&c->held);
}

static void entry_drop(struct page_cache *c, struct entry *e)
{
    HASH_DEL(c->entries, e);
    c->bytes -= bytes_of(e->page);
    page_release(e->page);
    free(e);
}

void page_cache_free(struct page_cache *c)
{
    while (c && c->entries)
        entry_drop(c, c->entries);
    free(c);
}

void page_cache_put(struct page_cache *c, struct str key, struct page *page)
{
    struct entry *old, *e = mem_alloc(1, sizeof(*e) + key.len);
    HASH_FIND(hh, c->entries, key.ptr, key.len, old);
    if (old)
        entry_drop(c, old);
    e->page = page_hold(page);
    memcpy(e->key, key.ptr, key.len);
    HASH_ADD_KEYPTR(hh, c->entries, e->key, key.len, e);
    c->bytes += bytes_of(e->page);
    if (bytes_of(e->page) > c->max_bytes)
        entry_drop(c, e);
    while (c->bytes > c->max_bytes || HASH_COUNT(c->entries) > c->max_pages)
        entry_drop(c, c->entries);
}

struct page *page_cache_get(struct page_cache *c, struct str key)
{
    struct entry *e;
    HASH_FIND(hh, c->entries, key.ptr, key.len, e);
    if (!e)
        return NULL;
    HASH_DEL(c->entries, e); /* to the end of the order */
    HASH_ADD_KEYPTR(hh, c->entries, e->key, key.len, e);
    return e->page;
}

void page_etag(char to[PAGE_ETAG_SIZE], struct str body)
{
    char digest[SHA256_HEX_SIZE];
    sha256_hex(body, digest);
    memcpy(to, digest, PAGE_ETAG_SIZE - 1);
    to[PAGE_ETAG_SIZE - 1] = '\0';
}

bool page_is_known(const char *etag, struct str known)
{
    return *etag && (str_is(str_trim(known), "*") || str_find_str(known, str_of(etag)) >= 0);
}
