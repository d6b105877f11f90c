#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/wake.h"

static void *wake_it(void *opaque)
{
    wake_up(opaque);
    return NULL;
}

static void another_thread_ends_the_wait(void **state)
{
    (void)state;
    struct wake w;
    struct why why;
    pthread_t thread;
    assert_int_equal(wake_init(&w, &why), OK);
    pthread_create(&thread, NULL, wake_it, &w);
    int64_t before_ms = clock_mono_ms();
    wake_wait(&w, 30000);
    assert_true(clock_mono_ms() - before_ms < 20000);
    pthread_join(thread, NULL);
    wake_clear(&w);
    wake_clear(&w);
}

static void a_wake_up_before_the_wait_is_not_lost_until_reset(void **state)
{
    (void)state;
    struct wake w;
    struct why why;
    assert_int_equal(wake_init(&w, &why), OK);
    wake_up(&w);
    wake_up(&w);
    wake_wait(&w, -1);
    wake_wait(&w, -1); /* waiting does not take it */
    wake_reset(&w);
    wake_reset(&w); /* nothing there, and no blocking */
    int64_t before_us = clock_mono_us();
    wake_wait(&w, 20);
    assert_true(clock_mono_us() - before_us >= 19000);
    wake_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_thread_ends_the_wait),
        cmocka_unit_test(a_wake_up_before_the_wait_is_not_lost_until_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
