/* The loop against brokers in memory, which refuse when asked to. */
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
#include "common/worker/worker.h"

#define LIMIT_MS 30000

static const struct metric_family families[] = {
    { "not_stored", METRIC_COUNTER, "", { "topic" } },
    { "dlq", METRIC_COUNTER, "", { "role", "class" } },
    { "delayed", METRIC_COUNTER, "", { "label" } },
    { "lost", METRIC_COUNTER, "", { "role", "topic" } },
};
enum { NOT_STORED, DLQ, DELAYED, LOST };

/* A role whose doing each test chooses. */
struct scene {
    struct brokers brokers;
    struct daemon_ctx daemon;
    struct role_ctx role;
    struct topics topics;
    struct worker *worker;
    struct work *held; /* under way */
    int taken, then, failed, dropped, asked;
    int64_t deadline_ms;
    void (*on_take)(struct scene *s, struct work *work);
    bool (*ended)(struct scene *s); /* the daemon is asked to stop */
};

static enum err never_run(struct role_ctx *role, void *opaque, struct why *why)
{
    (void)role;
    (void)opaque;
    return why_set(why, ERR_STOP, "not here");
}

static void take(void *opaque, struct work *work)
{
    struct scene *s = opaque;
    s->taken++;
    s->on_take(s, work);
}

static int tick(void *opaque)
{
    struct scene *s = opaque;
    assert_true(clock_mono_ms() < s->deadline_ms);
    if (!atomic_load(&s->daemon.stopping) && s->ended(s))
        atomic_store(&s->daemon.stopping, true);
    else if (s->held && s->asked > 2) { /* what was under way ends during the drain */
        work_done(s->held);
        s->held = NULL;
    }
    return 10;
}

static void drop(void *opaque, struct work *work)
{
    struct scene *s = opaque;
    if (work == s->held) {
        s->asked++;
        return;
    }
    s->dropped++;
    work_drop(work);
}

static void run(struct scene *s)
{
    static const enum topic reads[] = { TOPIC_EVENTS };
    static const enum topic writes[] = { TOPIC_RESULTS, TOPIC_DELAY_1M };
    static const struct worker_role does = { .take = take, .tick = tick, .drop = drop };
    static const struct role role = { "tested", "", never_run };
    const struct kafka_options kafka = { .brokers = s->brokers.addresses, .client_id = "test" };
    struct why why = { "" };
    atomic_store(&s->daemon.stopping, false);
    s->daemon.metrics = metrics_new(families, sizeof(families) / sizeof(families[0]));
    assert_int_equal(role_init(&s->role, &role, &s->daemon, &why), OK);
    const struct worker_options options = {
        .role = &s->role,
        .kafka = &kafka,
        .topics = &s->topics,
        .group = GROUP_FOLD,
        .reads = reads,
        .n_reads = 1,
        .writes = writes,
        .n_writes = 2,
        .metrics = { NOT_STORED, DLQ, DELAYED, LOST },
        .does = &does,
        .opaque = s,
    };
    s->deadline_ms = clock_mono_ms() + LIMIT_MS;
    assert_int_equal(worker_new(&s->worker, &options, &why), OK);
    assert_int_equal(worker_read(s->worker, &why), OK);
    assert_int_equal(worker_run(s->worker, &why), OK);
    worker_free(s->worker);
    role_clear(&s->role);
}

static double counted(struct scene *s, size_t family, const struct str *labels)
{
    return metrics_value(s->daemon.metrics, family, labels);
}

static struct scene begin(int records)
{
    struct scene s = { .brokers = brokers_begin(1) };
    struct why why;
    assert_int_equal(topics_init(&s.topics, "", &why), OK);
    for (int i = 0; i < TOPIC_COUNT; i++)
        if (i != TOPIC_EVENTS) /* broker_fixture.h has made it */
            rd_kafka_mock_topic_create(s.brokers.cluster, s.topics.name[i], 1, 1);
    brokers_write(&s.brokers, records);
    return s;
}

static void end(struct scene *s)
{
    metrics_free(s->daemon.metrics);
    brokers_end(&s->brokers);
}

/* How many a second run is given. */
static int read_again(struct scene *s)
{
    metrics_free(s->daemon.metrics);
    s->taken = 0;
    run(s);
    return s->taken;
}

static bool after_two_seconds(struct scene *s)
{
    return clock_mono_ms() > s->deadline_ms - LIMIT_MS + 2000;
}

static void put(struct work *work, post_failed_fn *failed, void *opaque)
{
    const struct post post = { .topic = TOPIC_RESULTS,
                               .key = STR_LIT("k"),
                               .value = STR_LIT("v"),
                               .failed = failed,
                               .opaque = opaque };
    work_put(work, &post);
}

static void on_then(void *opaque)
{
    struct scene *s = opaque;
    s->then++;
}

/* ---- ---- */

static void put_and_done(struct scene *s, struct work *work)
{
    rd_kafka_mock_push_request_errors(s->brokers.cluster, 0 /* Produce */, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    put(work, NULL, NULL);
    work_done(work);
    assert_int_equal(worker_in_hand(s->worker), 1); /* not before it is stored */
}

static bool nothing_in_hand(struct scene *s)
{
    return s->taken > 0 && worker_in_hand(s->worker) == 0 && worker_in_hand_bytes(s->worker) == 0;
}

static void what_is_not_acknowledged_is_written_again_and_only_then_done(void **state)
{
    (void)state;
    struct scene s = begin(1);
    s.on_take = put_and_done;
    s.ended = nothing_in_hand;
    run(&s);
    assert_in_range(counted(&s, NOT_STORED, METRIC_LABELS(STR_LIT("results"))), 1,
                    3); /* on a loaded machine it may be late once more */
    s.ended = after_two_seconds;
    assert_int_equal(read_again(&s), 0); /* committed */
    end(&s);
}

static bool take_over(void *opaque, enum err err, const char *reason)
{
    struct scene *s = opaque;
    assert_int_equal(err, ERR_RETRY);
    assert_non_null(reason);
    assert_int_equal(s->then, 0);
    s->failed++;
    return true;
}

static void put_with_failed(struct scene *s, struct work *work)
{
    rd_kafka_mock_push_request_errors(s->brokers.cluster, 0, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    put(work, take_over, s);
    work_then(work, on_then, s);
}

static bool then_came(struct scene *s)
{
    return s->then > 0;
}

static void what_the_role_takes_over_is_not_written_again(void **state)
{
    (void)state;
    struct scene s = begin(1);
    s.on_take = put_with_failed;
    s.ended = then_came;
    run(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.then, 1);
    assert_int_equal(s.dropped, 1); /* it was never done: read again */
    s.on_take = put_and_done;
    s.ended = nothing_in_hand;
    assert_int_equal(read_again(&s), 1);
    end(&s);
}

static void hold(struct scene *s, struct work *work)
{
    if (s->held)
        return; /* the second one just waits */
    s->held = work;
}

static bool both_taken(struct scene *s)
{
    return s->taken == 2;
}

static void a_stop_waits_for_what_is_under_way_and_gives_back_the_rest(void **state)
{
    (void)state;
    struct scene s = begin(2);
    s.on_take = hold;
    s.ended = both_taken;
    run(&s);
    assert_true(s.asked > 2);
    assert_int_equal(s.dropped, 1);
    s.on_take = put_and_done;
    s.ended = nothing_in_hand;
    assert_int_equal(read_again(&s), 1); /* the first was done during the drain, and committed */
    end(&s);
}

static void aside(struct scene *s, struct work *work)
{
    const struct park park = { .wait_ms = 60000, .attempt = 3, .error = "later", .label = "retry" };
    if (s->taken == 1)
        work_dead(work, "poison", "unreadable");
    else
        assert_true(work_park(work, &park));
    size_t in_hand = worker_in_hand(s->worker);
    work_done(work);
    assert_int_equal(worker_in_hand(s->worker), in_hand); /* not before it is stored */
}

static bool both_gone(struct scene *s)
{
    return s->taken == 2 && worker_in_hand(s->worker) == 0;
}

static void what_goes_aside_is_done_and_counted_when_it_is_stored(void **state)
{
    (void)state;
    struct scene s = begin(2);
    s.on_take = aside;
    s.ended = both_gone;
    run(&s);
    assert_int_equal(counted(&s, DLQ, METRIC_LABELS(STR_LIT("tested"), STR_LIT("poison"))), 1);
    assert_int_equal(counted(&s, DLQ, METRIC_LABELS(STR_LIT("tested"), STR_LIT("refused"))), 0);
    assert_int_equal(counted(&s, DELAYED, METRIC_LABELS(STR_LIT("retry"))), 1);
    end(&s);
}

static void part_done_part_open(struct scene *s, struct work *work)
{
    struct work *second = work_share(work), *third = work_share(work);
    assert_ptr_equal(second->record, work->record);
    assert_int_equal(worker_in_hand(s->worker), 3);
    assert_int_equal(worker_in_hand_bytes(s->worker), work->record->value.len); /* once */
    work_done(third);
    work_done(work);
    assert_int_equal(worker_in_hand(s->worker), 1);
}

static void all_parts_done(struct scene *s, struct work *work)
{
    struct work *second = work_share(work);
    put(second, NULL, NULL);
    work_done(second);
    work_done(work);
    assert_int_equal(worker_in_hand(s->worker), 1); /* the second's post is not stored */
}

static bool one_taken(struct scene *s)
{
    return s->taken == 1;
}

static void a_record_ends_with_its_last_part_and_is_read_again_when_one_was_given_back(void **state)
{
    (void)state;
    struct scene s = begin(1);
    s.on_take = part_done_part_open;
    s.ended = one_taken;
    run(&s);
    assert_int_equal(s.dropped, 1);
    s.on_take = all_parts_done;
    s.ended = nothing_in_hand;
    assert_int_equal(read_again(&s), 1);
    s.ended = after_two_seconds;
    assert_int_equal(read_again(&s), 0);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_acknowledged_is_written_again_and_only_then_done),
        cmocka_unit_test(what_the_role_takes_over_is_not_written_again),
        cmocka_unit_test(a_stop_waits_for_what_is_under_way_and_gives_back_the_rest),
        cmocka_unit_test(what_goes_aside_is_done_and_counted_when_it_is_stored),
        cmocka_unit_test(
            a_record_ends_with_its_last_part_and_is_read_again_when_one_was_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
