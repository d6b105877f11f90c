#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "common/base/table.h"

/* Keys are bytes: a NUL counts, and the caller's may go. */
static void a_value_is_found_by_the_bytes_of_its_key_and_stays_where_it_is(void **state)
{
    struct table t = { .size = sizeof(int) };
    char key[] = "a\0b";
    int *made = table_make(&t, (struct str){ key, 3 });

    (void)state;
    assert_int_equal(*made, 0);
    *made = 7;
    key[0] = 'x';
    assert_null(table_get(&t, STR_LIT("a")));
    assert_null(table_get(&t, STR_NONE));
    assert_ptr_equal(table_get(&t, (struct str){ "a\0b", 3 }), made);
    for (int i = 0; i < 1000; i++) {
        char other[16];
        snprintf(other, sizeof(other), "%d", i);
        *(int *)table_make(&t, str_of(other)) = i;
    }
    assert_ptr_equal(table_make(&t, (struct str){ "a\0b", 3 }), made);
    assert_int_equal(*made, 7);
    assert_int_equal(table_count(&t), 1001);
    table_clear(&t);
    assert_int_equal(table_count(&t), 0);
}

static void values_come_in_the_order_in_which_they_were_made(void **state)
{
    struct table t = { .size = 0 };
    const char *const keys[] = { "c", "a", "b" };
    size_t n = 0;

    (void)state;
    assert_null(table_next(&t, NULL));
    for (size_t i = 0; i < 3; i++)
        (void)table_make(&t, str_of(keys[i]));
    for (const void *value = NULL; (value = table_next(&t, value)); n++)
        assert_string_equal(table_key(value).ptr, keys[n]);
    assert_int_equal(n, 3);
    table_clear(&t);
}

static void what_is_removed_is_gone_and_the_others_stay(void **state)
{
    struct table t = { .size = sizeof(int) };
    int *empty = table_make(&t, STR_LIT("")), *a = table_make(&t, STR_LIT("a"));

    (void)state;
    assert_ptr_equal(table_make(&t, STR_LIT("")), empty);
    *a = 1;
    table_remove(&t, empty);
    assert_null(table_get(&t, STR_NONE));
    assert_ptr_equal(table_next(&t, NULL), a);
    table_remove(&t, a);
    assert_int_equal(table_count(&t), 0);
    assert_int_equal(*(int *)table_make(&t, STR_LIT("a")), 0);
    table_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_the_bytes_of_its_key_and_stays_where_it_is),
        cmocka_unit_test(values_come_in_the_order_in_which_they_were_made),
        cmocka_unit_test(what_is_removed_is_gone_and_the_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
