#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"

/* ASan ends a program that asks for too much, unless set to behave as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void it_grows_and_stays_terminated(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 100000);
    assert_string_equal(buf_str(&b).ptr, "");
    for (size_t i = 0; i < 5000; i++) {
        buf_printf(&b, "%04zu", i);
        assert_int_equal(b.ptr[b.len], '\0');
    }
    assert_int_equal(b.len, 20000);
    assert_memory_equal(b.ptr + 19996, "4999", 5);
    buf_put_number(&b, -1020);
    assert_string_equal(b.ptr + 20000, "-1020");
    assert_false(buf_full(&b));
}

static void at_its_maximum_it_keeps_what_it_had_and_refuses_the_rest(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 5);
    buf_puts(&b, "abc");
    buf_puts(&b, "de");
    assert_false(buf_full(&b));
    buf_putc(&b, 'f');
    assert_true(buf_full(&b));
    assert_string_equal(buf_str(&b).ptr, "abcde");
    buf_reset(&b);
    assert_false(buf_full(&b));
    buf_puts(&b, "123");
    buf_printf(&b, "%d", 456);
    buf_putc(&b, '7'); /* it would fit, but something before it is missing */
    assert_true(buf_full(&b));
    assert_string_equal(buf_str(&b).ptr, "123");
}

static void no_memory_is_full_and_not_the_end(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, SIZE_MAX);
    buf_puts(&b, "abc");
    buf_put(&b, (struct str){ "x", SIZE_MAX / 2 - 8 });
    assert_true(buf_full(&b));
    assert_string_equal(buf_str(&b).ptr, "abc");
}

static void take_hands_the_block_over(void **state)
{
    (void)state;
    struct buf b;
    size_t len;
    buf_init(&b, 10);
    char *block = buf_take(&b, NULL);
    assert_string_equal(block, "");
    free(block);
    buf_put(&b, (struct str){ "a\0b", 3 });
    block = buf_take(&b, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(block, "a\0b", 4);
    free(block);
    assert_int_equal(b.len, 0);
    buf_puts(&b, "again");
    assert_string_equal(buf_str(&b).ptr, "again");
    buf_clear(&b);
    buf_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_stays_terminated),
        cmocka_unit_test(at_its_maximum_it_keeps_what_it_had_and_refuses_the_rest),
        cmocka_unit_test(no_memory_is_full_and_not_the_end),
        cmocka_unit_test(take_hands_the_block_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
