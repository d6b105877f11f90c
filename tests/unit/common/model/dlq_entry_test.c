#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/dlq_entry.h"

#define OPEN_MAX 10000

static struct dlq dlq;

static int start(void **state)
{
    (void)state;
    dlq = (struct dlq){ .open_max = OPEN_MAX };
    return 0;
}

static int end(void **state)
{
    (void)state;
    dlq_clear(&dlq);
    return 0;
}

static void park(int32_t partition, int64_t offset, int64_t parked_ms)
{
    struct headers h;
    headers_init(&h);
    headers_put(&h, "class", STR_LIT("refused"));
    headers_put(&h, "repos", STR_LIT("org/a,org/b"));
    headers_put(&h, "resolves", STR_LIT("0@1")); /* of an earlier life: class is no state */
    headers_put_i64(&h, "parked_ms", parked_ms);
    dlq_add(&dlq, (struct dlq_position){ partition, offset }, 1, STR_LIT("k"), &h);
}

static void resolve(const char *position, const char *class)
{
    struct headers h;
    headers_init(&h);
    headers_put(&h, "class", str_of(class));
    headers_put(&h, "resolves", str_of(position));
    dlq_add(&dlq, (struct dlq_position){ 0, 900 }, 1, STR_LIT("k"), &h);
}

static void what_is_replayed_or_dropped_is_not_open(void **state)
{
    (void)state;
    park(0, 1, 10);
    park(0, 2, 30);
    park(1, 2, 20);
    resolve("0@1", "replayed");
    resolve("7@7", "dropped"); /* of what retention took */
    dlq_sort(&dlq, true);
    assert_int_equal(dlq_count(&dlq), 2);
    assert_false(dlq.more);
    const struct dlq_entry *e = dlq_next(&dlq, NULL);
    assert_string_equal(e->position, "0@2");
    assert_string_equal(e->repos, "org/a,org/b");
    assert_int_equal(e->parked_ms, 30);
    e = dlq_next(&dlq, e);
    assert_string_equal(e->position, "1@2");
    assert_null(dlq_next(&dlq, e));
    resolve("0@2", "dropped");
    resolve("1@2", "dropped");
    assert_int_equal(dlq_count(&dlq), 0);
}

static void what_retention_took_is_not_open(void **state)
{
    (void)state;
    park(0, 1, 10);
    park(0, 5, 10);
    park(1, 1, 10);
    dlq_expire(&dlq, 0, 5);
    assert_int_equal(dlq_count(&dlq), 2);
}

static void of_too_many_the_newest_stay_and_it_says_so(void **state)
{
    (void)state;
    for (int i = 0; i <= OPEN_MAX; i++)
        park(0, i, 1000000 + i);
    assert_int_equal(dlq_count(&dlq), OPEN_MAX - OPEN_MAX / 10 + 1);
    assert_true(dlq.more);
    dlq_sort(&dlq, true);
    assert_string_equal(dlq_next(&dlq, NULL)->position, "0@10000");
    assert_null(dlq_find(&dlq, (struct dlq_position){ 0, OPEN_MAX / 10 - 1 }));
    assert_non_null(dlq_find(&dlq, (struct dlq_position){ 0, OPEN_MAX / 10 }));
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
