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
    struct page page = {
        .status = 200, .at_ms = at_ms, .body = mem_dup(body), .len = strlen(body)
    };
    page_cache_put(c, str_of(key), &page);
    assert_int_equal(strlen(page.etag), PAGE_ETAG_SIZE - 1);
    page_clear(&page);
}

static bool has(struct page_cache *c, const char *key)
{
    struct page page;
    if (!page_cache_get(c, str_of(key), 0, STR_NONE, &page))
        return false;
    page_clear(&page);
    return true;
}

static void the_same_bytes_have_the_same_etag_and_others_another(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(1000, 10);
    struct page one, two, three;
    put(c, "one", "{\"a\":1}", 5);
    put(c, "two", "{\"a\":1}", 6);
    put(c, "three", "{\"a\":2}", 7);
    assert_true(page_cache_get(c, STR_LIT("one"), 0, STR_NONE, &one));
    assert_true(page_cache_get(c, STR_LIT("two"), 0, STR_NONE, &two));
    assert_true(page_cache_get(c, STR_LIT("three"), 0, STR_NONE, &three));
    assert_string_equal(one.etag, two.etag);
    assert_string_not_equal(one.etag, three.etag);
    assert_int_equal(one.at_ms, 5);
    assert_memory_equal(one.body, "{\"a\":1}", one.len);
    page_clear(&one);
    page_clear(&two);
    page_clear(&three);
    page_cache_free(c);
}

static void a_body_comes_only_with_what_is_fresh_and_not_known(void **state)
{
    (void)state;
    struct page_cache *c = page_cache_new(1000, 10);
    struct page page;
    put(c, "k", "body", 100);
    assert_true(page_cache_get(c, STR_LIT("k"), 101, STR_NONE, &page));
    assert_null(page.body);
    struct str known = str_of(page.etag);
    struct page again;
    assert_true(page_cache_get(c, STR_LIT("k"), 100, known, &again));
    assert_null(again.body);
    assert_false(page_cache_get(c, STR_LIT("other"), 0, STR_NONE, &page));
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

static void an_etag_is_known_however_a_client_or_proxy_writes_it(void **state)
{
    (void)state;
    const char *etag = "0123456789abcdef0123456789abcdef";
    assert_true(page_is_known(etag, STR_LIT("\"0123456789abcdef0123456789abcdef\"")));
    assert_true(page_is_known(etag, STR_LIT("\"x\", W/\"0123456789abcdef0123456789abcdef\"")));
    assert_true(page_is_known(etag, STR_LIT("0123456789abcdef0123456789abcdef")));
    assert_true(page_is_known(etag, STR_LIT(" * ")));
    assert_false(page_is_known(etag, STR_LIT("\"0123456789abcdef\"")));
    assert_false(page_is_known(etag, STR_NONE));
    assert_false(page_is_known("", STR_LIT("x")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_have_the_same_etag_and_others_another),
        cmocka_unit_test(a_body_comes_only_with_what_is_fresh_and_not_known),
        cmocka_unit_test(what_nobody_asked_for_longest_goes_first),
        cmocka_unit_test(bytes_are_bounded_and_what_is_larger_than_all_is_not_kept),
        cmocka_unit_test(an_etag_is_known_however_a_client_or_proxy_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
