#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reporter/web/open_dlq.h"

static struct open_dlq *dlq;

static int start(void **state)
{
    (void)state;
    dlq = open_dlq_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    open_dlq_free(dlq);
    return 0;
}

static void park(int32_t partition, int64_t offset, int64_t parked_ms)
{
    struct record r = { .at = { "crcr.dlq", partition, offset }, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "class", STR_LIT("refused"));
    headers_put(&r.headers, "repos", STR_LIT("org/a,org/b"));
    headers_put(&r.headers, "resolves", STR_LIT("0@1")); /* of an earlier life: class is no state */
    headers_put_i64(&r.headers, "parked_ms", parked_ms);
    open_dlq_add(dlq, &r);
}

static void resolve(const char *place, const char *class)
{
    struct record r = { .at = { "crcr.dlq", 0, 900 }, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "class", str_of(class));
    headers_put(&r.headers, "resolves", str_of(place));
    open_dlq_add(dlq, &r);
}

static void what_is_replayed_or_dropped_is_not_open(void **state)
{
    (void)state;
    bool more;
    park(0, 1, 10);
    park(0, 2, 30);
    park(1, 2, 20);
    resolve("0@1", "replayed");
    resolve("7@7", "dropped"); /* of what retention took */
    open_dlq_sort(dlq);
    assert_int_equal(open_dlq_count(dlq, &more), 2);
    assert_false(more);
    const struct open_dlq_entry *e = open_dlq_next(dlq, NULL);
    assert_int_equal(e->text.partition, 0);
    assert_string_equal(e->text.repos, "org/a,org/b");
    e = open_dlq_next(dlq, e);
    assert_int_equal(e->text.partition, 1);
    assert_null(open_dlq_next(dlq, e));
    resolve("0@2", "dropped");
    resolve("1@2", "dropped");
    assert_int_equal(open_dlq_count(dlq, &more), 0);
}

static void what_retention_took_is_not_open(void **state)
{
    (void)state;
    bool more;
    park(0, 1, 10);
    park(0, 5, 10);
    park(1, 1, 10);
    open_dlq_expire(dlq, 0, 5);
    assert_int_equal(open_dlq_count(dlq, &more), 2);
}

static void of_too_many_the_newest_stay_and_it_says_so(void **state)
{
    (void)state;
    bool more;
    for (int i = 0; i <= OPEN_DLQ_MAX; i++)
        park(0, i, 1000000 + i);
    assert_int_equal(open_dlq_count(dlq, &more), OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10 + 1);
    assert_true(more);
    open_dlq_sort(dlq);
    const struct open_dlq_entry *e = NULL, *oldest = NULL;
    while ((e = open_dlq_next(dlq, e)))
        oldest = e;
    assert_int_equal(oldest->text.offset, OPEN_DLQ_MAX / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_replayed_or_dropped_is_not_open, start, end),
        cmocka_unit_test_setup_teardown(what_retention_took_is_not_open, start, end),
        cmocka_unit_test_setup_teardown(of_too_many_the_newest_stay_and_it_says_so, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
