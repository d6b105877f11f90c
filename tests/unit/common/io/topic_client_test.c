#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/io/topic_client.h"

/* By how much the wall clock that the waits are made with is ahead of the kernel's. */
static time_t ahead_s;

int clock_gettime(clockid_t clock, struct timespec *to)
{
    long failed = syscall(SYS_clock_gettime, clock, to);
    if (clock == CLOCK_REALTIME)
        to->tv_sec += ahead_s;
    return (int)failed;
}

/* As librdkafka waits: until a moment of the wall clock. */
static void a_wait_takes_as_long_as_was_left_whatever_the_clock_says(void **state)
{
    static const time_t each[] = { 0, 600, -600 };
    struct topic_client client; /* what waits so is linked with this */
    mtx_t mutex;
    cnd_t cond;
    (void)state;
    topic_client_init(&client, &(struct kafka_options){ .brokers = "127.0.0.1:9" });
    mtx_init(&mutex, mtx_plain);
    cnd_init(&cond);
    alarm(60); /* a wait of ten minutes is a failure, not a time-out of the test */
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct timespec at;
        ahead_s = each[i];
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += 1;
        int64_t began_ms = clock_mono_ms();
        mtx_lock(&mutex);
        while (cnd_timedwait(&cond, &mutex, &at) == thrd_success)
            ; /* woken without a reason */
        mtx_unlock(&mutex);
        assert_true(clock_mono_ms() - began_ms >= 900);
    }
    alarm(0);
    cnd_destroy(&cond);
    mtx_destroy(&mutex);
    topic_client_clear(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_takes_as_long_as_was_left_whatever_the_clock_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
