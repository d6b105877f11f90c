/* A group's coordinator that is unavailable when it is asked about, and what becomes of the
 * question then: once it ended the process, with librdkafka's assertion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <cmocka.h>

#include "broker_fixture.h"
#include "common/base/clock.h"
#include "common/io/topic_admin.h"

#define TIMEOUT_MS 300
#define LIMIT_MS   60000

static enum err ask(struct topic_admin *a, struct why *why)
{
    const char *topic = BROKER_TOPIC, *groups[] = { "one", "two" };
    struct partition_lag *lags;
    size_t n;
    enum err err = topic_admin_lag(a, groups, 2, &topic, 1, &lags, &n, why);
    if (!err)
        free(lags);
    return err;
}

static void is_answered_in_the_end(struct topic_admin *a)
{
    struct why why = { "" };
    int64_t deadline = clock_mono_ms() + LIMIT_MS;
    while (ask(a, &why))
        if (clock_mono_ms() > deadline)
            fail_msg("%s", why.text);
}

static void coordinator_is(const struct brokers *b, int32_t broker)
{
    rd_kafka_mock_coordinator_set(b->cluster, "group", "one", broker);
    rd_kafka_mock_coordinator_set(b->cluster, "group", "two", broker);
}

/* Of two brokers the second is the coordinator, and it is down; the groups were asked about in
 * vain. */
static struct topic_admin *asked_in_vain(const struct brokers *b)
{
    const struct kafka_options kafka = { .brokers = b->addresses };
    struct topic_admin *a;
    struct why why;
    coordinator_is(b, 2);
    rd_kafka_mock_broker_set_down(b->cluster, 2);
    assert_int_equal(topic_admin_new(&a, &kafka, TIMEOUT_MS, &why), OK);
    int64_t deadline =
        clock_mono_ms() + 4 * TIMEOUT_MS; /* the last ones reach the coordinator's connection */
    while (clock_mono_ms() < deadline)
        assert_int_equal(ask(a, &why), ERR_RETRY);
    return a;
}

static void a_coordinator_that_comes_back_late_ends_no_process(void **state)
{
    (void)state;
    struct brokers b = brokers_begin(2);
    struct topic_admin *a = asked_in_vain(&b);
    rd_kafka_mock_broker_set_up(b.cluster, 2);
    is_answered_in_the_end(a);
    topic_admin_free(a);
    brokers_end(&b);
}

static void one_that_moved_is_asked_at_once_and_its_old_broker_ends_no_process(void **state)
{
    (void)state;
    struct brokers b = brokers_begin(2);
    struct topic_admin *a = asked_in_vain(&b);
    coordinator_is(&b, 1);
    is_answered_in_the_end(a);
    rd_kafka_mock_broker_set_up(b.cluster, 2);
    for (int i = 0; i < 5; i++)
        is_answered_in_the_end(a);
    topic_admin_free(a);
    brokers_end(&b);
}

static void questions_that_are_open_do_not_hold_up_the_end(void **state)
{
    (void)state;
    struct brokers b = brokers_begin(2);
    topic_admin_free(asked_in_vain(&b));
    brokers_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinator_that_comes_back_late_ends_no_process),
        cmocka_unit_test(one_that_moved_is_asked_at_once_and_its_old_broker_ends_no_process),
        cmocka_unit_test(questions_that_are_open_do_not_hold_up_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
