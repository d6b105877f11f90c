#include "page_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(message) abort() /* no memory: as mem.h says */
#include <uthash.h>

#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"

struct entry {
    struct page page;
    UT_hash_handle hh; /* in the order of their last use */
    size_t key_len;
    char key[];
};

struct page_cache {
    pthread_mutex_t lock; /* for what follows */
    struct entry *entries;
    size_t bytes, max_bytes, max_pages;
};

void page_clear(struct page *page)
{
    free(page->body);
    *page = (struct page){ .status = 0 };
}

struct page_cache *page_cache_new(size_t max_bytes, size_t max_pages)
{
    struct page_cache *c = mem_alloc(1, sizeof(*c));
    c->max_bytes = max_bytes;
    c->max_pages = max_pages;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void entry_drop(struct page_cache *c, struct entry *e)
{
    HASH_DEL(c->entries, e);
    c->bytes -= e->page.len;
    page_clear(&e->page);
    free(e);
}

void page_cache_free(struct page_cache *c)
{
    if (!c)
        return;
    while (c->entries)
        entry_drop(c, c->entries);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void page_etag(char to[PAGE_ETAG_SIZE], struct str body)
{
    char digest[SHA256_HEX_SIZE];
    sha256_hex(body, digest);
    memcpy(to, digest, PAGE_ETAG_SIZE - 1);
    to[PAGE_ETAG_SIZE - 1] = '\0';
}

/* The copy; NULL when there is no memory, for outsiders choose the size. */
static char *body_copy(const struct page *page)
{
    char *body = malloc(page->len + 1);
    return body ? memcpy(body, page->body, page->len) : NULL;
}

void page_cache_put(struct page_cache *c, struct str key, struct page *page)
{
    struct entry *old;
    page_etag(page->etag, (struct str){ page->body, page->len });
    char *body = page->len <= c->max_bytes ? body_copy(page) : NULL;
    pthread_mutex_lock(&c->lock);
    HASH_FIND(hh, c->entries, key.ptr, key.len, old);
    if (old)
        entry_drop(c, old);
    if (body) {
        struct entry *e = mem_alloc(1, sizeof(*e) + key.len);
        e->page = *page;
        e->page.body = body;
        e->key_len = key.len;
        memcpy(e->key, key.ptr, key.len);
        HASH_ADD_KEYPTR(hh, c->entries, e->key, e->key_len, e);
        c->bytes += e->page.len;
    }
    while (c->bytes > c->max_bytes || HASH_COUNT(c->entries) > c->max_pages)
        entry_drop(c, c->entries);
    pthread_mutex_unlock(&c->lock);
}

bool page_cache_get(struct page_cache *c, struct str key, int64_t since_ms, struct str known,
                    struct page *ret)
{
    struct entry *e;
    pthread_mutex_lock(&c->lock);
    HASH_FIND(hh, c->entries, key.ptr, key.len, e);
    if (e) {
        HASH_DEL(c->entries, e); /* to the end of the order */
        HASH_ADD_KEYPTR(hh, c->entries, e->key, e->key_len, e);
        *ret = e->page;
        bool wanted = ret->at_ms >= since_ms && !page_is_known(ret->etag, known);
        ret->body = wanted ? body_copy(&e->page) : NULL;
    }
    pthread_mutex_unlock(&c->lock);
    return e;
}

bool page_is_known(const char *etag, struct str known)
{
    return *etag && (str_is(str_trim(known), "*") || str_find_str(known, str_of(etag)) >= 0);
}
