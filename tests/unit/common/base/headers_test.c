#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/base/headers.h"

static void values_are_found_whatever_the_case(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    assert_true(headers_put(&h, "X-GitHub-Event", STR_LIT("push")));
    assert_true(headers_put(&h, "x-github-event", STR_LIT("second")));
    assert_true(str_is(headers_get(&h, "x-GITHUB-event"), "push"));
    assert_null(headers_get(&h, "x-github").ptr);
}

static void absent_values_are_not_put(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    assert_true(headers_put(&h, "pr", STR_NONE));
    assert_int_equal(h.n, 0);
    assert_true(headers_put(&h, "pr", STR_LIT("")));
    assert_true(str_is(headers_get(&h, "pr"), ""));
}

static void numbers_live_in_the_struct(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    assert_true(headers_put_i64(&h, "a", INT64_MIN) && headers_put_i64(&h, "b", 42));
    assert_true(str_is(headers_get(&h, "a"), "-9223372036854775808"));
    assert_true(headers_get_i64(&h, "a", 0) == INT64_MIN);
    assert_int_equal(headers_get_i64(&h, "b", 0), 42);
    assert_int_equal(headers_get_i64(&h, "c", -1), -1);
    headers_set(&h, "b", STR_LIT("x"));
    assert_int_equal(headers_get_i64(&h, "b", -1), -1);
}

static void setting_replaces_or_appends_or_removes(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    assert_true(headers_set(&h, "a", STR_LIT("1")) && headers_set(&h, "A", STR_LIT("2")));
    assert_int_equal(h.n, 1);
    assert_true(str_is(headers_get(&h, "a"), "2"));
    assert_true(headers_set_i64(&h, "a", 3) && headers_set_i64(&h, "b", 4));
    assert_int_equal(headers_get_i64(&h, "a", 0), 3);
    assert_int_equal(h.n, 2);
    assert_true(headers_set(&h, "a", STR_NONE));
    assert_null(headers_get(&h, "a").ptr);
    headers_remove(&h, "B");
    headers_remove(&h, "gone");
    assert_int_equal(h.n, 0);
}

static void a_number_set_again_and_again_takes_no_more_room(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    for (int64_t i = 1000; i < 9999; i++) {
        assert_true(headers_set_i64(&h, "attempt", i));
        assert_int_equal(headers_get_i64(&h, "attempt", 0), i);
    }
}

static void full_is_refused(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    for (int i = 0; i < HEADERS_MAX; i++)
        assert_true(headers_put(&h, "n", STR_LIT("v")));
    assert_false(headers_put(&h, "n", STR_LIT("v")));
    assert_false(headers_put_i64(&h, "n", 1));
    assert_true(headers_put(&h, "n", STR_NONE));
    headers_init(&h);
    int put = 0;
    while (headers_put_i64(&h, "n", INT64_MIN))
        put++;
    assert_int_equal(put, 512 / 20);
}

static void room_is_made_at_the_end(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    headers_put(&h, "first", STR_LIT("1"));
    headers_leave_room(&h, HEADERS_MAX - 1);
    assert_int_equal(h.n, 1);
    while (headers_put(&h, "n", STR_LIT("v")))
        ;
    headers_leave_room(&h, 2);
    assert_int_equal(h.n, HEADERS_MAX - 2);
    assert_true(str_is(headers_get(&h, "first"), "1"));
}

static void their_bytes_are_those_of_names_and_values(void **state)
{
    (void)state;
    struct headers h;
    headers_init(&h);
    assert_int_equal(headers_bytes(&h), 0);
    headers_put(&h, "name", STR_LIT("value"));
    headers_put_i64(&h, "n", 123);
    assert_int_equal(headers_bytes(&h), 4 + 5 + 1 + 3);
}

static void a_copied_value_is_kept(void **state)
{
    (void)state;
    struct headers h;
    char text[] = "computed";
    headers_init(&h);
    assert_true(headers_put_copy(&h, "seq", str_of(text)));
    text[0] = 'X';
    assert_true(str_is(headers_get(&h, "seq"), "computed"));
}

static void a_copy_does_not_need_the_original(void **state)
{
    (void)state;
    struct headers from, to;
    headers_init(&from);
    headers_put(&from, "text", STR_LIT("borrowed"));
    headers_put_i64(&from, "number", 12345);
    headers_copy(&to, &from);
    memset(&from, 'x', sizeof(from));
    assert_int_equal(headers_get_i64(&to, "number", 0), 12345);
    assert_true(str_is(headers_get(&to, "text"), "borrowed"));
    assert_true(headers_put_i64(&to, "more", 1));
    assert_int_equal(headers_get_i64(&to, "number", 0), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_whatever_the_case),
        cmocka_unit_test(absent_values_are_not_put),
        cmocka_unit_test(numbers_live_in_the_struct),
        cmocka_unit_test(setting_replaces_or_appends_or_removes),
        cmocka_unit_test(a_number_set_again_and_again_takes_no_more_room),
        cmocka_unit_test(full_is_refused),
        cmocka_unit_test(room_is_made_at_the_end),
        cmocka_unit_test(their_bytes_are_those_of_names_and_values),
        cmocka_unit_test(a_copied_value_is_kept),
        cmocka_unit_test(a_copy_does_not_need_the_original),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
