/* topic_reader against a real broker. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "live_kafka.h"

#define SESSION_MS 6000
#define HELD_MS    3000

static int number_of(const struct record *record)
{
    int64_t number = -1;

    (void)str_to_i64(record->value, &number);
    return (int)number;
}

/* The reader commits about once a second. */
static void await_committed(struct topic_reader *r, const char *topic, int64_t offset)
{
    int64_t committed, deadline = clock_mono_ms() + WAIT_MS;

    while ((committed = live_committed(topic, topic)) != offset && clock_mono_ms() < deadline)
        assert_null(topic_reader_next(r, 100));
    assert_int_equal(committed, offset);
}

static void only_the_low_watermark_is_committed(void **state)
{
    enum { N = 10 };
    char topic[64];
    const char *topics[] = { topic };
    struct record *records[N];

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, N, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    struct topic_reader *r = live_reader(&options);
    for (int i = 0; i < N; i++)
        assert_int_equal(number_of(records[i] = live_next(r)), i);
    for (int i = N - 1; i >= 0; i--)
        if (i != 3)
            record_done(records[i]);
    await_committed(r, topic, 3);
    record_done(records[3]);
    await_committed(r, topic, N);
    topic_reader_free(r);
}

static void a_dropped_record_is_read_again_and_what_follows_it(void **state)
{
    char topic[64];
    const char *topics[] = { topic };

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, 10, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    struct topic_reader *r = live_reader(&options);
    for (int i = 0; i < 10; i++) {
        struct record *record = live_next(r);
        if (i == 6)
            record_drop(record);
        else
            record_done(record);
    }
    topic_reader_free(r); /* commits on leaving */
    r = live_reader(&options);
    for (int i = 6; i < 10; i++) {
        struct record *record = live_next(r);
        assert_int_equal(number_of(record), i);
        record_done(record);
    }
    topic_reader_free(r);
    assert_int_equal(live_committed(topic, topic), 10);
}

static void a_partition_is_paused_at_the_limit_and_goes_on_in_order(void **state)
{
    enum { N = 120, LIMIT = 20 };
    char topic[64];
    const char *topics[] = { topic };
    struct record *in_hand[LIMIT];

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, N, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1, .max_in_hand = LIMIT
    };
    struct topic_reader *r = live_reader(&options);
    for (int next = 0; next < N;) {
        int n = 0;
        while (n < LIMIT && next < N)
            assert_int_equal(number_of(in_hand[n++] = live_next(r)), next++);
        if (next < N)
            assert_null(topic_reader_next(r, 50));
        while (n) /* newest first: only the last done lets the watermark rise */
            record_done(in_hand[--n]);
    }
    topic_reader_free(r);
    assert_int_equal(live_committed(topic, topic), N);
}

static void the_limit_in_bytes_holds_too_but_one_large_record_passes(void **state)
{
    enum { SIZE = 300 };
    static char block[SIZE];
    char topic[64];
    const char *topics[] = { topic };
    struct why why;

    (void)state;
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    for (int i = 0; i < 3; i++)
        assert_ok(topic_writer_put_wait(w, topic, STR_NONE, (struct str){ block, SIZE }, NULL, NULL,
                                        &why));
    topic_writer_free(w);
    const struct topic_reader_options options = { .kafka = live_kafka(),
                                                  .group = topic,
                                                  .topics = topics,
                                                  .n_topics = 1,
                                                  .max_in_hand_bytes = 100 };
    struct topic_reader *r = live_reader(&options);
    for (int i = 0; i < 3; i++) {
        struct record *record = live_next(r);
        assert_int_equal(record->at.offset, i);
        assert_null(topic_reader_next(r, 50));
        record_done(record);
    }
    topic_reader_free(r);
}

static void headers_count_as_bytes_in_hand(void **state)
{
    static char block[300];
    char topic[64];
    const char *topics[] = { topic };
    struct headers headers;
    struct why why;

    (void)state;
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    headers_init(&headers);
    headers_put(&headers, "large", (struct str){ block, sizeof(block) });
    for (int i = 0; i < 2; i++)
        assert_ok(topic_writer_put_wait(w, topic, STR_NONE, STR_LIT("1"), &headers, NULL, &why));
    topic_writer_free(w);
    const struct topic_reader_options options = { .kafka = live_kafka(),
                                                  .group = topic,
                                                  .topics = topics,
                                                  .n_topics = 1,
                                                  .max_in_hand_bytes = 100 };
    struct topic_reader *r = live_reader(&options);
    struct record *first = live_next(r);
    assert_null(topic_reader_next(r, 500));
    record_done(first);
    record_done(live_next(r));
    topic_reader_free(r);
}

static void until_held(struct topic_reader *r, bool held, int64_t most_ms)
{
    int64_t end = clock_mono_ms() + most_ms;
    while (topic_reader_holds(r, HELD_MS) != held && clock_mono_ms() < end)
        (void)topic_reader_next(r, 20);
    assert_int_equal(topic_reader_holds(r, HELD_MS), held);
}

/* KAFKA_PID is stopped, not ended: as one that the network is cut off from. */
static void partitions_are_held_only_while_the_coordinator_answers(void **state)
{
    pid_t pid = (pid_t)atol(getenv("KAFKA_PID"));
    char topic[64];
    const char *topics[] = { topic };

    (void)state;
    live_topic(topic, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    struct topic_reader *r = live_reader(&options);
    until_held(r, true, WAIT_MS);
    assert_false(topic_reader_holds(r, SESSION_MS));
    kill(pid, SIGSTOP);
    until_held(r, false, SESSION_MS); /* the next owner may come after that */
    kill(pid, SIGCONT);
    until_held(r, true, WAIT_MS);
    topic_reader_free(r);
}

static void a_paused_reader_hands_out_nothing_and_goes_on(void **state)
{
    char topic[64];
    const char *topics[] = { topic };

    (void)state;
    live_topic(topic, 3);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    struct topic_reader *r = live_reader(&options);
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (topic_reader_assigned(r) != 3 || topic_reader_state(r).lag < 0) {
        assert_null(topic_reader_next(r, 20));
        assert_true(clock_mono_ms() < deadline);
    }
    topic_reader_pause(r, true);
    live_fill(topic, 5, 5);
    assert_null(topic_reader_next(r, 500));
    assert_int_equal(topic_reader_assigned(r), 3);
    assert_true(topic_reader_state(r).oldest_ms == -1);
    topic_reader_pause(r, false);
    struct record *first = live_next(r);
    assert_true(topic_reader_state(r).oldest_ms == first->timestamp_ms);
    for (int i = 1; i < 5; i++)
        record_done(live_next(r));
    assert_true(topic_reader_state(r).oldest_ms == first->timestamp_ms);
    record_done(first);
    assert_true(topic_reader_state(r).oldest_ms == -1);
    topic_reader_free(r);
}

static void a_new_record_wakes_the_loop(void **state)
{
    char topic[64];
    const char *topics[] = { topic };
    struct wake wake;
    struct why why;

    (void)state;
    live_topic(topic, 1);
    assert_ok(wake_init(&wake, &why));
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1, .wake = &wake
    };
    struct topic_reader *r = live_reader(&options);
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    while (topic_reader_assigned(r) != 1 || topic_reader_state(r).lag < 0) {
        assert_null(topic_reader_next(r, 20));
        assert_true(clock_mono_ms() < deadline);
    }
    for (int round = 0; round < 3; round++) {
        struct record *record;
        wake_reset(&wake);
        while ((record = topic_reader_next(r, 0)))
            record_done(record);
        live_fill(topic, 1, 1);
        deadline = clock_mono_ms() + WAIT_MS;
        do {
            wake_wait(&wake, WAIT_MS); /* a lost wake-up fails by the deadline */
            wake_reset(&wake);
            record = topic_reader_next(r, 0);
        } while (!record && clock_mono_ms() < deadline);
        assert_non_null(record);
        record_done(record);
    }
    topic_reader_free(r);
    wake_clear(&wake);
}

/* ---- rebalance ------------------------------------------------------------------------------ */

#define MOVED 600

/* One member of a group: what it holds in hand, and what all members have seen. */
struct member {
    struct topic_reader *reader;
    struct record *in_hand[MOVED];
    size_t n;
    int *times_done; /* by number, shared */
    size_t revoked;  /* partitions taken away so far */
};

static void finish(struct member *m, size_t i)
{
    m->times_done[number_of(m->in_hand[i])]++;
    record_done(m->in_hand[i]);
    m->in_hand[i] = m->in_hand[--m->n];
}

static void on_revoked(void *opaque, const struct topic_position *partitions, size_t n,
                       int64_t deadline_mono_ms)
{
    struct member *m = opaque;

    assert_true(deadline_mono_ms > 0);
    assert_null(topic_reader_next(m->reader, 0));
    m->revoked += n;
    for (size_t i = 0; i < m->n;) {
        bool gone = false;
        for (size_t k = 0; k < n; k++)
            gone |= partitions[k].partition == m->in_hand[i]->at.partition;
        if (gone)
            finish(m, i);
        else
            i++;
    }
}

static void turn(struct member *m, size_t keep)
{
    struct record *record = topic_reader_next(m->reader, 10);

    if (record)
        m->in_hand[m->n++] = record;
    while (m->n > keep)
        finish(m, 0);
}

/* The second member joins while the first has records in hand in every partition. */
static void a_rebalance_hands_over_without_loss_and_without_repeats(void **state)
{
    static int times_done[MOVED];
    static struct member a, b;
    char topic[64];
    const char *topics[] = { topic };
    struct topic_reader_options options = { .kafka = live_kafka(),
                                            .group = topic,
                                            .topics = topics,
                                            .n_topics = 1,
                                            .revoked = on_revoked };

    (void)state;
    live_topic(topic, 6);
    live_fill(topic, MOVED, 60);
    a.times_done = b.times_done = times_done;
    options.opaque = &a;
    a.reader = live_reader(&options);
    int64_t deadline = clock_mono_ms() + 2 * WAIT_MS;
    while (a.n < 100 && clock_mono_ms() < deadline)
        turn(&a, 100);
    options.opaque = &b;
    b.reader = live_reader(&options);
    while (topic_reader_assigned(b.reader) < 3 && clock_mono_ms() < deadline) {
        turn(&a, 100);
        turn(&b, 100);
    }
    assert_int_equal(topic_reader_assigned(a.reader), 3);
    assert_int_equal(topic_reader_assigned(b.reader), 3);
    assert_int_equal(a.revoked, 3);
    int done = 0;
    while (done < MOVED && clock_mono_ms() < deadline) {
        turn(&a, 0);
        turn(&b, 0);
        done = 0;
        for (int i = 0; i < MOVED; i++)
            done += times_done[i] > 0;
    }
    topic_reader_free(a.reader);
    topic_reader_free(b.reader);
    for (int i = 0; i < MOVED; i++)
        assert_int_equal(times_done[i], 1);
}

static void leave_in_hand(void *opaque, const struct topic_position *partitions, size_t n,
                          int64_t deadline_mono_ms)
{
    (void)opaque, (void)partitions, (void)n, (void)deadline_mono_ms;
}

/* A call under way borrows from its record, also after the partition is another's. */
static void what_a_record_says_stays_in_place_when_its_partition_goes(void **state)
{
    char topic[64];
    const char *topics[] = { topic };
    static struct record *in_hand[MOVED];
    static struct str keys[MOVED], values[MOVED];
    size_t n = 0;

    (void)state;
    live_topic(topic, 6);
    live_fill(topic, 60, 60);
    struct topic_reader_options options = { .kafka = live_kafka(),
                                            .group = topic,
                                            .topics = topics,
                                            .n_topics = 1,
                                            .revoked = leave_in_hand };
    struct topic_reader *a = live_reader(&options);
    for (; n < 60; n++) {
        in_hand[n] = live_next(a);
        keys[n] = in_hand[n]->key;
        values[n] = in_hand[n]->value;
    }
    struct topic_reader *b = live_reader(&options);
    int64_t deadline = clock_mono_ms() + 2 * WAIT_MS;
    while (topic_reader_assigned(b) < 3 && clock_mono_ms() < deadline) {
        record_drop(topic_reader_next(b, 10));
        record_drop(topic_reader_next(a, 10));
    }
    assert_int_equal(topic_reader_assigned(a), 3);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(in_hand[i]->key.ptr, keys[i].ptr);
        assert_ptr_equal(in_hand[i]->value.ptr, values[i].ptr);
        record_done(in_hand[i]);
    }
    topic_reader_free(a);
    topic_reader_free(b);
}

/* librdkafka remembers a pause of a partition that it does not read any more. */
static void a_partition_that_went_while_it_was_paused_is_read_when_it_comes_back(void **state)
{
    enum { N = 60, LIMIT = 5 };
    char topic[64];
    const char *topics[] = { topic };
    struct topic_reader_options options = { .kafka = live_kafka(),
                                            .group = topic,
                                            .topics = topics,
                                            .n_topics = 1,
                                            .max_in_hand = LIMIT,
                                            .revoked = leave_in_hand };
    struct record *in_hand[2 * LIMIT];
    bool seen[N] = { false };
    int n_seen = 0;

    (void)state;
    live_topic(topic, 2);
    live_fill(topic, N, N);
    struct topic_reader *a = live_reader(&options);
    for (int i = 0; i < 2 * LIMIT; i++)
        in_hand[i] = live_next(a); /* both partitions are full, and paused */
    struct topic_reader *b = live_reader(&options);
    int64_t deadline = clock_mono_ms() + 3 * WAIT_MS;
    while (topic_reader_assigned(b) < 1 && clock_mono_ms() < deadline) {
        record_drop(topic_reader_next(b, 10));
        assert_null(topic_reader_next(a, 10));
    }
    assert_int_equal(topic_reader_assigned(a), 1);
    topic_reader_free(b);
    for (bool open = false; n_seen < N - LIMIT && clock_mono_ms() < deadline;) {
        for (int i = 0; i < 2 * LIMIT && !open && topic_reader_assigned(a) == 2; i++)
            record_done(in_hand[i]);
        open = topic_reader_assigned(a) == 2;
        struct record *record = topic_reader_next(a, 10); /* perhaps as the partition comes back */
        if (!record)
            continue;
        n_seen += !seen[number_of(record)];
        seen[number_of(record)] = true;
        record_done(record);
    }
    assert_true(n_seen >= N - LIMIT); /* all but what was done of the partition that stayed */
    topic_reader_free(a);
}

static void records_left_in_hand_outlive_the_reader_and_commit_nothing(void **state)
{
    char topic[64];
    const char *topics[] = { topic };

    (void)state;
    live_topic(topic, 1);
    live_fill(topic, 2, 1);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    struct topic_reader *r = live_reader(&options);
    struct record *left = live_next(r);
    record_done(live_next(r));
    topic_reader_free(r);
    assert_int_equal(number_of(left), 0);
    assert_string_equal(left->at.topic, topic);
    assert_true(str_is(left->key, "k0"));
    record_done(left);
    assert_true(live_committed(topic, topic) <= 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_low_watermark_is_committed),
        cmocka_unit_test(a_dropped_record_is_read_again_and_what_follows_it),
        cmocka_unit_test(a_partition_is_paused_at_the_limit_and_goes_on_in_order),
        cmocka_unit_test(the_limit_in_bytes_holds_too_but_one_large_record_passes),
        cmocka_unit_test(headers_count_as_bytes_in_hand),
        cmocka_unit_test(partitions_are_held_only_while_the_coordinator_answers),
        cmocka_unit_test(a_paused_reader_hands_out_nothing_and_goes_on),
        cmocka_unit_test(a_new_record_wakes_the_loop),
        cmocka_unit_test(a_rebalance_hands_over_without_loss_and_without_repeats),
        cmocka_unit_test(what_a_record_says_stays_in_place_when_its_partition_goes),
        cmocka_unit_test(a_partition_that_went_while_it_was_paused_is_read_when_it_comes_back),
        cmocka_unit_test(records_left_in_hand_outlive_the_reader_and_commit_nothing),
    };
    if (argc > 1) /* the name of one test */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
