#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "reporter/web/page_cache.h"

static void put(struct page_cache *c, const char *key, const char *body, int64_t at_ms)
{
    struct page *page = page_new(c, NULL, 200, str_of(mem_dup(body)));
    page->at_ms = at_ms;
    assert_int_equal(strlen(page->etag), PAGE_ETAG_SIZE - 1);
    page_cache_put(c, str_of(key), page);
    page_release(page);
}

static bool has(struct page_cache *c, const char *key)
{
    return page_cache_get(c, str_of(key));
}

static void the_same_bytes_have_the_same_etag_and_others_another(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(1000, 10);
    put(c, "one", "{\"a\":1}", 5);
    put(c, "two", "{\"a\":1}", 6);
    put(c, "three", "{\"a\":2}", 7);
    const struct page *one = page_cache_get(c, STR_LIT("one"));
    assert_string_equal(one->etag, page_cache_get(c, STR_LIT("two"))->etag);
    assert_string_not_equal(one->etag, page_cache_get(c, STR_LIT("three"))->etag);
    assert_int_equal(one->at_ms, 5);
    assert_true(str_is(one->body, "{\"a\":1}"));
    page_cache_free(c);
}

static void the_newest_of_a_key_is_in_the_place_of_the_one_before(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(10, 10);
    put(c, "k", "12345678", 1);
    put(c, "k", "body", 2);
    put(c, "other", "123456", 3);
    assert_true(str_is(page_cache_get(c, STR_LIT("k"))->body, "body"));
    assert_int_equal(page_cache_get(c, STR_LIT("k"))->at_ms, 2);
    assert_false(has(c, "none"));
    page_cache_free(c);
}

static void what_nobody_asked_for_longest_goes_first(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(1000, 2);
    put(c, "one", "1", 1);
    put(c, "two", "2", 1);
    assert_true(has(c, "one"));
    put(c, "three", "3", 1);
    assert_true(has(c, "one"));
    assert_false(has(c, "two"));
    page_cache_free(c);
}

static void bytes_are_bounded_and_what_is_larger_than_all_is_not_kept(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(8, 100);
    put(c, "one", "12345", 1);
    put(c, "two", "12345", 1);
    assert_false(has(c, "one"));
    put(c, "large", "123456789", 1);
    assert_false(has(c, "large"));
    assert_true(has(c, "two"));
    put(c, "two", "1", 2);
    put(c, "three", "1234567", 2);
    assert_true(has(c, "two") && has(c, "three"));
    page_cache_free(c);
}

static void what_is_still_read_counts_until_it_is_released(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(10, 10);
    put(c, "k", "12345678", 1);
    struct page *old = page_hold(page_cache_get(c, STR_LIT("k")));
    assert_int_equal(page_cache_held(c), 8);
    put(c, "k", "123", 2);
    assert_int_equal(page_cache_held(c), 11);
    assert_true(str_is(old->body, "12345678"));
    page_release(old);
    assert_int_equal(page_cache_held(c), 3);
    put(c, "large", "12345678901", 3);
    assert_int_equal(page_cache_held(c), 3);
    struct page fixed = { .refs = 1 };
    page_release(page_hold(&fixed));
    page_release(&fixed); /* not the cache's: nothing is freed */
    page_cache_free(c);
}

static void a_large_one_is_there_compressed_too_and_that_counts(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(10000, 10);
    char body[2001] = "";
    put(c, "small", "{}", 1);
    assert_null(page_cache_get(c, STR_LIT("small"))->gzip.ptr);
    memset(body, 'x', sizeof(body) - 1);
    put(c, "large", body, 1);
    const struct page *large = page_cache_get(c, STR_LIT("large"));
    assert_in_range(large->gzip.len, 1, 100);
    assert_int_equal(page_cache_held(c), 2 + 2000 + large->gzip.len);
    page_cache_free(c);
}

static void what_says_the_same_as_before_is_the_one_before(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(1000, 10);
    put(c, "k", "the same", 1);
    struct page *old = page_hold(page_cache_get(c, STR_LIT("k")));
    struct page *same = page_new(c, old, 200, str_of(mem_dup("the same")));
    struct page *other = page_new(c, old, 200, str_of(mem_dup("another")));
    struct page *failed = page_new(c, old, 503, str_of(mem_dup("the same")));
    assert_ptr_equal(same, old);
    assert_ptr_not_equal(other, old);
    assert_ptr_not_equal(failed, old);
    page_release(old);
    page_release(other);
    page_release(failed);
    page_cache_put(c, STR_LIT("k"), same);
    page_release(same);
    assert_int_equal(page_cache_held(c), strlen("the same"));
    assert_true(str_is(page_cache_get(c, STR_LIT("k"))->body, "the same"));
    page_cache_free(c);
}

static void an_etag_is_known_however_a_client_or_proxy_writes_it(void **state)
{
    (void)state;
    const char *etag = "0123456789abcdef0123456789abcdef";
    assert_true(page_is_known(etag, STR_LIT("\"0123456789abcdef0123456789abcdef\"")));
    assert_true(page_is_known(etag, STR_LIT("\"x\", W/\"0123456789abcdef0123456789abcdef\"")));
    assert_true(page_is_known(etag, STR_LIT("0123456789abcdef0123456789abcdef")));
    assert_true(page_is_known(etag, STR_LIT("x.0123456789abcdef0123456789abcdef")));
    assert_true(page_is_known(etag, STR_LIT(" * ")));
    assert_false(page_is_known(etag, STR_LIT("\"0123456789abcdef\"")));
    assert_false(page_is_known(etag, STR_NONE));
    assert_false(page_is_known("", STR_LIT("x")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_have_the_same_etag_and_others_another),
        cmocka_unit_test(the_newest_of_a_key_is_in_the_place_of_the_one_before),
        cmocka_unit_test(what_nobody_asked_for_longest_goes_first),
        cmocka_unit_test(bytes_are_bounded_and_what_is_larger_than_all_is_not_kept),
        cmocka_unit_test(what_is_still_read_counts_until_it_is_released),
        cmocka_unit_test(a_large_one_is_there_compressed_too_and_that_counts),
        cmocka_unit_test(what_says_the_same_as_before_is_the_one_before),
        cmocka_unit_test(an_etag_is_known_however_a_client_or_proxy_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
