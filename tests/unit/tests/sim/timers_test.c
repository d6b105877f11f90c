#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/sim/timers.h"

#define N 1000

/* What fired, by (how late it was to be, which it was of those). */
static size_t fired[N], n_fired, n_dropped;
static size_t numbers[N];

static void fire(void *opaque)
{
    fired[n_fired++] = *(size_t *)opaque;
}

static void drop(void *opaque)
{
    (void)opaque;
    n_dropped++;
}

static int64_t in_ms(size_t number)
{
    return (int64_t)(number * 7919 % 13) * 20;
}

static void they_fire_when_due_the_first_added_first(void **state)
{
    struct timers *t = timers_new();
    (void)state;
    n_fired = 0;
    for (size_t i = 0; i < N; i++) {
        numbers[i] = i;
        timers_add(t, in_ms(i), fire, drop, &numbers[i]);
    }
    for (int64_t until_ms = clock_mono_ms() + 10000; n_fired < N && clock_mono_ms() < until_ms;)
        timers_run(t);
    assert_int_equal(n_fired, N);
    for (size_t i = 1; i < N; i++) {
        size_t before = fired[i - 1], after = fired[i];
        assert_true(in_ms(before) < in_ms(after) ||
                    (in_ms(before) == in_ms(after) && before < after));
    }
    assert_int_equal(timers_wait_ms(t, 50), 50);
    timers_free(t);
}

static void what_is_still_to_come_is_dropped(void **state)
{
    struct timers *t = timers_new();
    (void)state;
    n_dropped = 0;
    for (size_t i = 0; i < 100; i++)
        timers_add(t, 60000, fire, drop, &numbers[0]);
    assert_in_range(timers_wait_ms(t, 120000), 50000, 60000);
    timers_free(t);
    assert_int_equal(n_dropped, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_fire_when_due_the_first_added_first),
        cmocka_unit_test(what_is_still_to_come_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
