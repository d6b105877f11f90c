/* The watchdog against roles and partitions that are as they should not be; brokers in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>
#include <cmocka.h>

#include "../io/broker_fixture.h"
#include "common/base/clock.h"
#include "common/daemon/daemon_private.h"

enum { LATER_MS = 3600000 };

struct scene {
    struct brokers brokers;
    struct daemon_ctx daemon;
    struct role_ctx role;
    struct watchdog *dog;
    int64_t now_ms;
};

static enum err never_run(struct role_ctx *role, void *opaque, struct why *why)
{
    (void)role;
    (void)opaque;
    return why_set(why, ERR_STOP, "not here");
}

static void begin(struct scene *s)
{
    static const struct role role = { "tested", "", never_run };
    static const struct daemon_spec spec = { .daemon = DAEMON_DISPATCHER, .name = "test" };
    struct buf faults;
    struct why why;
    *s = (struct scene){ .brokers = brokers_begin(1) };
    char brokers[256];
    snprintf(brokers, sizeof(brokers), "KAFKA_BROKERS=%s", s->brokers.addresses);
    char *const environment[] = { brokers,
                                  "GITHUB_APP_ID=1",
                                  "GITHUB_APP_PRIVATE_KEY=x",
                                  "ALLOWLIST_URL=/x",
                                  "REDIS_ENDPOINT=127.0.0.1:1",
                                  NULL };
    buf_init(&faults, 4096);
    assert_int_equal(config_load(&s->daemon.config, DAEMON_DISPATCHER, environment, &faults), OK);
    buf_clear(&faults);
    s->daemon.spec = &spec;
    s->daemon.roles = &s->role;
    s->daemon.n_roles = 1;
    assert_int_equal(role_init(&s->role, &role, &s->daemon, &why), OK);
    assert_int_equal(watchdog_new(&s->dog, &s->daemon, &why), OK);
    s->now_ms = clock_mono_ms() + LATER_MS;
    s->role.health.alive_ms = s->role.health.progress_ms = s->now_ms;
}

static void end(struct scene *s)
{
    watchdog_free(s->dog);
    role_clear(&s->role);
    config_free(s->daemon.config);
    brokers_end(&s->brokers);
}

static bool stalled(struct scene *s, int64_t after_ms)
{
    watchdog_look(s->dog, s->now_ms + after_ms);
    return atomic_load(&s->daemon.stalled);
}

static void a_loop_that_hangs_ends_the_daemon_after_90_s(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    assert_false(stalled(&s, 30000)); /* /healthz says so already */
    assert_false(stalled(&s, 90000));
    assert_true(stalled(&s, 90001));
    end(&s);
}

static void lag_without_progress_or_a_reason_ends_it(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    s.role.health.lag = 7;
    s.role.health.alive_ms = s.now_ms + 100000;
    assert_false(stalled(&s, 90000));
    s.role.health.waiting = true;
    assert_false(stalled(&s, 99000));
    s.role.health.waiting = false;
    assert_true(stalled(&s, 99001));
    end(&s);
}

static void idle(struct scene *s, int64_t offset)
{
    s->role.n_idle = 1;
    s->role.idle[0] = (struct idle_partition){
        .topic = BROKER_TOPIC, .partition = 0, .offset = offset, .since_ms = s->now_ms - 60000
    };
}

static void a_partition_with_more_to_read_ends_it_at_the_third_look(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    brokers_write(&s.brokers, 2);
    idle(&s, 1);
    assert_false(stalled(&s, 0));
    assert_false(stalled(&s, 14999)); /* not asked again yet */
    assert_false(stalled(&s, 15000));
    s.role.health.alive_ms = s.now_ms + 30000;
    assert_true(stalled(&s, 30000));
    end(&s);
}

static void one_that_moves_between_or_was_read_to_its_end_does_not(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    brokers_write(&s.brokers, 2);
    s.role.health.alive_ms = s.now_ms + 90000;
    idle(&s, 0);
    assert_false(stalled(&s, 0));
    assert_false(stalled(&s, 15000));
    idle(&s, 1);
    assert_false(stalled(&s, 30000));
    idle(&s, 2);
    for (int i = 3; i < 6; i++)
        assert_false(stalled(&s, i * 15000));
    end(&s);
}

static void without_a_broker_nothing_is_a_stall(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    idle(&s, -1);
    rd_kafka_mock_broker_set_down(s.brokers.cluster, 1);
    s.role.health.alive_ms = s.now_ms + 90000;
    for (int i = 0; i < 4; i++)
        assert_false(stalled(&s, i * 15000));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_hangs_ends_the_daemon_after_90_s),
        cmocka_unit_test(lag_without_progress_or_a_reason_ends_it),
        cmocka_unit_test(a_partition_with_more_to_read_ends_it_at_the_third_look),
        cmocka_unit_test(one_that_moves_between_or_was_read_to_its_end_does_not),
        cmocka_unit_test(without_a_broker_nothing_is_a_stall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
