/* What needs brokers in memory; the rest: tests/integration/test_topics.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_follower.h"

#define LIMIT_MS 20000

/* By how much this thread's clock is ahead of the kernel's; librdkafka's threads keep theirs. */
static _Thread_local time_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *to)
{
    int failed = (int)syscall(SYS_clock_gettime, id, to);
    to->tv_sec += id == CLOCK_MONOTONIC ? ahead_s : 0;
    return failed;
}

static struct topic_follower *caught_up(const struct brokers *b)
{
    const char *topic = BROKER_TOPIC;
    const struct topic_follower_options options = { .kafka = { .brokers = b->addresses },
                                                    .topics = &topic,
                                                    .n_topics = 1 };
    int64_t deadline = clock_mono_ms() + LIMIT_MS;
    struct topic_follower *f = NULL;
    struct why why;
    brokers_write(b, 1);
    assert_int_equal(topic_follower_start(&f, &options, &why), OK);
    while (!topic_follower_caught_up(f)) {
        (void)topic_follower_next(f, 10);
        assert_true(clock_mono_ms() < deadline);
    }
    return f;
}

static bool stalled_after(struct topic_follower *f, time_t seconds, struct why *why)
{
    ahead_s = seconds;
    bool stalled = topic_follower_stalled(f, why);
    ahead_s = 0;
    return stalled;
}

static void one_that_reads_nothing_for_90_s_though_there_is_more_is_given_up(void **state)
{
    struct brokers b = brokers_begin(1);
    struct topic_follower *f = caught_up(&b);
    struct why why;
    (void)state;
    brokers_write(&b, 1);
    assert_false(stalled_after(f, 85, &why));
    assert_false(stalled_after(f, 95, &why)); /* the record may have come this very moment */
    assert_false(stalled_after(f, 100, &why));
    assert_true(stalled_after(f, 126, &why));
    assert_string_equal(why.text, BROKER_TOPIC " [0] has records that are not read");
    topic_follower_free(f);
    brokers_end(&b);
}

static void one_that_has_read_all_is_not(void **state)
{
    struct brokers b = brokers_begin(1);
    struct topic_follower *f = caught_up(&b);
    struct why why;
    (void)state;
    for (time_t seconds = 95; seconds < 250; seconds += 31)
        assert_false(stalled_after(f, seconds, &why));
    topic_follower_free(f);
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_reads_nothing_for_90_s_though_there_is_more_is_given_up),
        cmocka_unit_test(one_that_has_read_all_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
