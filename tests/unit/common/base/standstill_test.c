#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/standstill.h"

#define NOW 1000000LL

static struct standstill running(void)
{
    struct standstill s = { 0 };
    standstill_look(&s, NOW - 1000);
    standstill_look(&s, NOW);
    return s;
}

static void what_was_read_while_the_loop_goes_round_is_not_old(void **state)
{
    (void)state;
    struct standstill s = running();
    for (int64_t at = NOW; at < NOW + 60000; at += 1000)
        standstill_look(&s, at);
    assert_false(standstill_since(&s, NOW, NOW + 60000));
}

static void what_was_read_before_a_standstill_is_old_at_once_and_for_ever(void **state)
{
    (void)state;
    struct standstill s = running();
    int64_t back = NOW + STANDSTILL_MS + 1;
    assert_true(standstill_since(&s, NOW, back));
    for (int64_t at = back; at < back + 10000; at += 1000)
        assert_true(standstill_since(&s, NOW, at));
}

static void it_is_seen_also_when_the_loop_looks_first(void **state)
{
    (void)state;
    struct standstill s = running();
    standstill_look(&s, NOW + 9000);
    assert_true(standstill_since(&s, NOW, NOW + 9001));
}

static void what_was_read_afterwards_is_not_old(void **state)
{
    (void)state;
    struct standstill s = running();
    standstill_look(&s, NOW + 9000);
    assert_false(standstill_since(&s, NOW + 9000, NOW + 9500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_while_the_loop_goes_round_is_not_old),
        cmocka_unit_test(what_was_read_before_a_standstill_is_old_at_once_and_for_ever),
        cmocka_unit_test(it_is_seen_also_when_the_loop_looks_first),
        cmocka_unit_test(what_was_read_afterwards_is_not_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
