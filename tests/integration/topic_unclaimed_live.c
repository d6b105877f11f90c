/* topic_reader's unclaimed records against a real broker: what one owner of a partition tells the
 * next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/io/topic_unclaimed.h"
#include "live_kafka.h"

static void known(struct topic_reader *r, const struct record *record)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (record_was_unclaimed(record) && clock_mono_ms() < deadline)
        assert_null(topic_reader_next(r, 20));
}

static void told(struct topic_reader *r, const struct record *record)
{
    struct why why = { "" };
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (!record_may_be_unclaimed(record)) {
        if (topic_reader_tell_unclaimed(r, &why))
            assert_null(topic_reader_next(r, 20)); /* another commit was under way */
        if (clock_mono_ms() >= deadline)
            fail_msg("not told: %s", why.text);
    }
}

/* The next owner knows, also when a later commit was made, until the offset that was told. */
static void what_was_told_of_unclaimed_records_is_read_by_the_next_owner(void **state)
{
    enum { N = TOPIC_UNCLAIMED_AHEAD + 20, HELD = 10, DONE = 3 };
    char topic[64];
    const char *topics[] = { topic };
    struct record *records[HELD];
    struct why why;

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, N, 1);
    const struct topic_reader_options options = { .kafka = live_kafka(),
                                                  .group = topic,
                                                  .topics = topics,
                                                  .n_topics = 1,
                                                  .max_in_hand = HELD,
                                                  .unclaimed = true };
    struct topic_reader *r = live_reader(&options);
    for (int i = 0; i < HELD; i++)
        records[i] = live_next(r);
    known(r, records[0]);
    assert_false(record_was_unclaimed(records[0]));
    assert_false(record_may_be_unclaimed(records[0]));
    told(r, records[0]);
    assert_true(record_may_be_unclaimed(records[HELD - 1]));
    assert_false(record_was_unclaimed(records[0])); /* it is we who have it in hand */
    for (int i = 0; i < DONE; i++)
        record_done(records[i]);
    assert_ok(topic_reader_commit(r, &why));
    for (int i = DONE; i < HELD; i++)
        record_drop(records[i]);
    topic_reader_free(r);
    assert_int_equal(live_committed(topic, topic), DONE);

    r = live_reader(&options);
    for (int i = DONE; i < N; i++) {
        struct record *record = live_next(r);
        assert_int_equal(record_was_unclaimed(record), i < HELD + TOPIC_UNCLAIMED_AHEAD);
        record_done(record);
    }
    topic_reader_free(r);
    assert_int_equal(live_committed(topic, topic), N);

    live_fill(topic, 1, 1);
    r = live_reader(&options);
    struct record *last = live_next(r);
    known(r, last);
    assert_false(record_was_unclaimed(last));
    record_done(last);
    topic_reader_free(r);
}

static void what_the_broker_did_not_take_is_not_told(void **state)
{
    const pid_t pid = live_pid();
    char topic[64];
    const char *topics[] = { topic };
    struct why why;

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, 1, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1, .unclaimed = true
    };
    struct topic_reader *r = live_reader(&options);
    struct record *record = live_next(r);
    known(r, record);
    live_freeze(pid);
    int64_t started = clock_mono_ms();
    enum err err = topic_reader_tell_unclaimed(r, &why);
    int64_t took_ms = clock_mono_ms() - started;
    live_thaw(pid);
    assert_int_equal(err, ERR_RETRY);
    assert_false(record_may_be_unclaimed(record));
    assert_in_range(took_ms, 0, WAIT_MS);
    told(r, record);
    record_done(record);
    topic_reader_free(r);
}

static void nothing_is_unclaimed_where_nothing_was_told(void **state)
{
    char topic[64];
    const char *topics[] = { topic };

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, 2, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1, .unclaimed = true
    };
    for (int i = 0; i < 2; i++) {
        struct topic_reader *r = live_reader(&options);
        struct record *record = live_next(r);
        known(r, record);
        assert_int_equal(record->at.offset, i);
        assert_false(record_was_unclaimed(record));
        record_done(record);
        while (i == 0 && (record = topic_reader_next(r, 100)))
            record_drop(record);
        topic_reader_free(r);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_of_unclaimed_records_is_read_by_the_next_owner),
        cmocka_unit_test(nothing_is_unclaimed_where_nothing_was_told),
        cmocka_unit_test(what_the_broker_did_not_take_is_not_told),
    };
    if (argc > 1) /* the name of one test */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
