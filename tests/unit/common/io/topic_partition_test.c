#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/io/topic_partition.h"

#define TOPIC    "events"
#define MOST_OUT 5000

struct fixture {
    struct topic_partition *p;
    struct record *out[MOST_OUT]; /* by offset; NULL: not in hand */
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .p = topic_partition_new(TOPIC, 3, -1) };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    topic_partition_free(f->p);
    for (int i = 0; i < MOST_OUT; i++)
        record_done(f->out[i]);
    return 0;
}

static struct record *take_one(struct fixture *f, int64_t offset)
{
    struct record record = { .at = { TOPIC, 3, offset }, .value = STR_LIT("12345") };

    headers_init(&record.headers);
    return topic_partition_take(f->p, &record);
}

static void take(struct fixture *f, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++)
        f->out[i] = take_one(f, i);
}

static void done(struct fixture *f, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++) {
        record_done(f->out[i]);
        f->out[i] = NULL;
    }
}

#define assert_offset(f, offset) assert_int_equal(topic_partition_offset((f)->p), offset)
#define assert_span(f, n)        assert_int_equal(topic_partition_span((f)->p), n)

static void nothing_is_committable_before_the_first_record(void **state)
{
    struct fixture *f = *state;

    assert_offset(f, -1);
}

static void offset_stays_at_the_lowest_that_is_not_done(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 8);
    assert_offset(f, 5);
    assert_span(f, 4);
    done(f, 8, 8);
    done(f, 6, 6);
    assert_offset(f, 5);
    assert_span(f, 4);
    done(f, 5, 5);
    assert_offset(f, 7);
    done(f, 7, 7);
    assert_offset(f, 9);
    assert_span(f, 0);
    assert_int_equal(f->p->held_bytes, 0);
}

static void gaps_are_passed_over(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 5);
    take(f, 9, 9);
    take(f, 12, 12);
    done(f, 5, 5);
    assert_offset(f, 9);
    done(f, 9, 9);
    assert_offset(f, 12);
    done(f, 12, 12);
    assert_offset(f, 13);
    topic_partition_pass(f->p, 17); /* transaction markers up to the end */
    assert_offset(f, 17);
}

static void passing_does_not_overtake_what_is_in_hand(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 5);
    topic_partition_pass(f->p, 20);
    assert_offset(f, 5);
    done(f, 5, 5);
    assert_offset(f, 20);
}

static void an_idle_partition_is_known_by_its_end(void **state)
{
    struct fixture *f = *state;

    topic_partition_pass(f->p, 40);
    assert_offset(f, 40);
}

static void what_is_dropped_is_not_committed_past(void **state)
{
    struct fixture *f = *state;

    take(f, 0, 9);
    record_drop(f->out[6]);
    record_drop(f->out[4]);
    record_drop(f->out[5]);
    f->out[4] = f->out[5] = f->out[6] = NULL;
    done(f, 0, 3);
    done(f, 7, 9);
    assert_offset(f, 4);
    assert_span(f, 6);
    take(f, 4, 4); /* it is read again, and what follows it */
    done(f, 4, 4);
    assert_offset(f, 5);
}

static void what_is_in_hand_below_stays_when_offsets_go_back(void **state)
{
    struct fixture *f = *state;

    take(f, 0, 3);
    done(f, 1, 1);
    done(f, 3, 3);
    struct record *again = take_one(f, 2);
    assert_int_equal(f->p->n_held, 2);
    assert_offset(f, 0); /* or a crash would lose the first */
    done(f, 0, 0);
    assert_offset(f, 2);
    done(f, 2, 2); /* belongs to nobody */
    assert_offset(f, 2);
    record_done(again);
    assert_offset(f, 3);
    assert_int_equal(f->p->held_bytes, 0);
}

static void offsets_that_go_back_leave_out_what_is_below(void **state)
{
    struct fixture *f = *state;

    take(f, 100, 199);
    done(f, 150, 199);
    take(f, 180, 181);
    assert_offset(f, 100);
    done(f, 100, 149);
    assert_offset(f, 180);
    struct record *below_all = take_one(f, 3);
    assert_offset(f, 3);
    assert_span(f, 1);
    record_done(below_all);
    assert_offset(f, 4);
    assert_span(f, 0);
}

static void done_of_what_is_not_out_changes_nothing(void **state)
{
    struct fixture *f = *state;

    take(f, 3, 4);
    struct topic_partition *gone = f->p;
    f->p = topic_partition_new(TOPIC, 3, -1); /* it came back */
    topic_partition_free(gone);
    struct record *again = take_one(f, 3);
    done(f, 3, 4);
    assert_offset(f, 3);
    record_done(again);
    assert_offset(f, 4);
}

/* The log begins at `first` and ends at `end` when the record or the end at `offset` comes. */
#define assert_seen(f, offset, first, end, n)                                                      \
    assert_int_equal(topic_partition_removed((f)->p, offset, first, end), n)
#define assert_removed(f, offset, first, n) assert_seen(f, offset, first, 1000, n)

/* The same, if it came next. */
static void assert_would_be(const struct fixture *f, int64_t offset, int64_t first, int64_t n)
{
    struct topic_partition copy = *f->p;

    assert_int_equal(topic_partition_removed(&copy, offset, first, 1000), n);
}

static void what_the_log_lost_between_two_records_was_removed_unread(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 9);
    assert_would_be(f, 10, 0, 0);
    assert_would_be(f, 10, 8, 0); /* read before it was removed */
    assert_would_be(f, 16, 16, 6);
    assert_would_be(f, 11, 11, 1);
    assert_would_be(f, 20, 16, 6); /* 16 … 19 are no records that were removed */
    assert_would_be(f, 12, 16, 2); /* the log was cut again while this one was on its way */
}

static void compaction_and_markers_of_transactions_lose_nothing(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 9);
    assert_would_be(f, 12, 0, 0);
    assert_would_be(f, 500, 0, 0);
    assert_would_be(f, 12, 5, 0);
    assert_would_be(f, 12, 10, 0); /* all that was read is gone, and nothing else */
    assert_would_be(f, 12, -1, 0); /* unknown */
}

static void while_the_beginning_is_unknown_a_hole_is_kept_in_mind(void **state)
{
    struct fixture *f = *state;

    take(f, 5, 9);
    assert_removed(f, 20, -1, 0);
    take(f, 20, 20);
    assert_removed(f, 21, -1, 0);
    take(f, 21, 21);
    assert_int_equal(f->p->expected, 10);
    assert_removed(f, 22, 22, 10); /* those that were read and removed since do not count */
    take(f, 22, 22);
    assert_int_equal(f->p->expected, 23);
    assert_removed(f, 30, -1, 0);
    topic_partition_pass(f->p, 30);
    assert_removed(f, 30, 20, 0); /* compacted away */
    take(f, 30, 30);
    assert_int_equal(f->p->expected, 31);
    assert_removed(f, 40, -1, 0);
    take(f, 40, 40);
    assert_removed(f, 31, -1, 0); /* librdkafka reads it again */
    record_done(take_one(f, 31));
    assert_int_equal(f->p->expected, 32);
    topic_partition_free(f->p);
    f->p = topic_partition_new(TOPIC, 3, -1);
    assert_removed(f, 3, -1, 0); /* a group that begins */
    record_done(take_one(f, 3));
    assert_int_equal(f->p->expected, 4);
}

static void the_committed_offset_tells_what_was_removed_meanwhile(void **state)
{
    struct fixture *f = *state;

    assert_removed(f, 40, 40, 0); /* a group that begins */
    topic_partition_free(f->p);
    f->p = topic_partition_new(TOPIC, 3, 7);
    assert_offset(f, 7);
    assert_removed(f, 7, 0, 0);
    assert_removed(f, 7, 7, 0);
    assert_removed(f, 40, 40, 33);
    topic_partition_pass(f->p, 40); /* there is nothing left at all */
    assert_offset(f, 40);
    assert_removed(f, 40, 40, 0);
    topic_partition_free(f->p);
    f->p = topic_partition_new(TOPIC, 3, 0);
    assert_removed(f, 3, 3, 3);
}

static void a_topic_made_anew_is_known_by_offsets_that_go_back(void **state)
{
    struct fixture *f = *state;

    topic_partition_free(f->p);
    f->p = topic_partition_new(TOPIC, 3, 70);
    assert_seen(f, 0, 0, 4, -1);
    topic_partition_pass(f->p, 4); /* its end */
    assert_offset(f, 4);
    assert_removed(f, 4, 0, 0);
    take(f, 4, 5);
    assert_seen(f, 5, 0, 5, -1);
    topic_partition_pass(f->p, 0);
    assert_offset(f, 0); /* what is in hand was of the old one */
    done(f, 4, 5);
    assert_offset(f, 0);
}

static void what_is_read_again_is_not_made_anew(void **state)
{
    struct fixture *f = *state;

    take(f, 4, 9);
    assert_seen(f, 7, 0, 10, 0);
    assert_seen(f, 7, 0, 12, 0);
    assert_seen(f, 7, -1, -1, 0); /* unknown */
    assert_seen(f, 7, 0, 9, -1);
}

/* A plain array is the model. */
static void agrees_with_a_plain_model_in_any_order(void **state)
{
    struct fixture *f = *state;
    uint32_t random = 1;
    int64_t taken = 0, low = 0;

    while (low < MOST_OUT) {
        random = random * 1664525u + 1013904223u;
        if ((random >> 16) % 3 == 0 && taken < MOST_OUT) {
            take(f, taken, taken);
            taken++;
        } else if (taken > low) {
            int64_t window = taken - low < 300 ? taken - low : 300;
            int64_t offset = low + (int64_t)((random >> 8) % (uint32_t)window);
            done(f, offset, offset);
        }
        while (low < taken && !f->out[low])
            low++;
        if (taken)
            assert_offset(f, low);
        assert_span(f, taken - low);
    }
}

int main(void)
{

    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_committable_before_the_first_record, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(offset_stays_at_the_lowest_that_is_not_done, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(gaps_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(passing_does_not_overtake_what_is_in_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(an_idle_partition_is_known_by_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_not_committed_past, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_in_hand_below_stays_when_offsets_go_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(offsets_that_go_back_leave_out_what_is_below, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(done_of_what_is_not_out_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_log_lost_between_two_records_was_removed_unread,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(compaction_and_markers_of_transactions_lose_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(while_the_beginning_is_unknown_a_hole_is_kept_in_mind,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_read_again_is_not_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(the_committed_offset_tells_what_was_removed_meanwhile,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_topic_made_anew_is_known_by_offsets_that_go_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(agrees_with_a_plain_model_in_any_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
