#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/io/watermark.h"

static void take(struct watermark *w, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++)
        assert_true(watermark_take(w, i));
}

static void nothing_is_committable_before_the_first_record(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    assert_int_equal(watermark_offset(&w), -1);
    watermark_clear(&w);
}

static void offset_stays_at_the_lowest_that_is_not_done(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    take(&w, 5, 8);
    assert_int_equal(watermark_offset(&w), 5);
    watermark_done(&w, 8);
    watermark_done(&w, 6);
    assert_int_equal(watermark_offset(&w), 5);
    watermark_done(&w, 5);
    assert_int_equal(watermark_offset(&w), 7);
    watermark_done(&w, 7);
    assert_int_equal(watermark_offset(&w), 9);
    assert_int_equal(watermark_span(&w), 0);
    watermark_clear(&w);
}

static void gaps_are_passed_over(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    assert_true(watermark_take(&w, 5));
    assert_true(watermark_take(&w, 9));
    assert_true(watermark_take(&w, 12));
    watermark_done(&w, 5);
    assert_int_equal(watermark_offset(&w), 9);
    watermark_done(&w, 9);
    assert_int_equal(watermark_offset(&w), 12);
    watermark_done(&w, 12);
    assert_int_equal(watermark_offset(&w), 13);
    watermark_pass(&w, 17); /* transaction markers up to the end */
    assert_int_equal(watermark_offset(&w), 17);
    watermark_clear(&w);
}

static void passing_does_not_overtake_what_is_in_hand(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    assert_true(watermark_take(&w, 5));
    watermark_pass(&w, 20);
    assert_int_equal(watermark_offset(&w), 5);
    watermark_done(&w, 5);
    assert_int_equal(watermark_offset(&w), 20);
    watermark_clear(&w);
}

static void an_idle_partition_is_known_by_its_end(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    watermark_pass(&w, 40);
    assert_int_equal(watermark_offset(&w), 40);
    watermark_clear(&w);
}

static void the_same_offset_is_not_taken_twice(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    take(&w, 0, 2);
    assert_false(watermark_take(&w, 2));
    assert_false(watermark_take(&w, 0));
    assert_int_equal(watermark_span(&w), 3);
    watermark_clear(&w);
}

static void offsets_that_go_back_leave_out_what_is_below(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    take(&w, 100, 199);
    for (int64_t i = 150; i < 200; i++)
        watermark_done(&w, i);
    watermark_back(&w, 180);
    assert_int_equal(watermark_span(&w), 80);
    take(&w, 180, 181);
    assert_int_equal(watermark_offset(&w), 100);
    for (int64_t i = 100; i < 150; i++)
        watermark_done(&w, i);
    assert_int_equal(watermark_offset(&w), 180);
    watermark_back(&w, 3); /* below all */
    assert_int_equal(watermark_offset(&w), 3);
    assert_int_equal(watermark_span(&w), 0);
    watermark_clear(&w);
}

static void done_of_what_is_not_out_changes_nothing(void **state)
{
    struct watermark w;

    (void)state;
    watermark_init(&w);
    watermark_done(&w, 3);
    take(&w, 3, 4);
    watermark_done(&w, 2);
    watermark_done(&w, 5);
    assert_int_equal(watermark_offset(&w), 3);
    watermark_done(&w, 3);
    watermark_done(&w, 3);
    assert_int_equal(watermark_offset(&w), 4);
    watermark_clear(&w);
}

/* The ring wraps and grows while marks are in it; a plain array is the model. */
static void agrees_with_a_plain_model_in_any_order(void **state)
{
    enum { N = 5000 };
    static char is_done[N];
    struct watermark w;
    uint32_t random = 1;
    int64_t taken = 0, low = 0;

    (void)state;
    watermark_init(&w);
    while (low < N) {
        random = random * 1664525u + 1013904223u;
        if ((random >> 16) % 3 == 0 && taken < N) {
            take(&w, taken, taken);
            taken++;
        } else if (taken > low) {
            int64_t window = taken - low < 300 ? taken - low : 300;
            int64_t offset = low + (int64_t)((random >> 8) % (uint32_t)window);
            is_done[offset] = 1;
            watermark_done(&w, offset);
        }
        while (low < taken && is_done[low])
            low++;
        if (taken)
            assert_int_equal(watermark_offset(&w), low);
        assert_int_equal(watermark_span(&w), taken - low);
    }
    watermark_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_committable_before_the_first_record),
        cmocka_unit_test(offset_stays_at_the_lowest_that_is_not_done),
        cmocka_unit_test(gaps_are_passed_over),
        cmocka_unit_test(passing_does_not_overtake_what_is_in_hand),
        cmocka_unit_test(an_idle_partition_is_known_by_its_end),
        cmocka_unit_test(the_same_offset_is_not_taken_twice),
        cmocka_unit_test(offsets_that_go_back_leave_out_what_is_below),
        cmocka_unit_test(done_of_what_is_not_out_changes_nothing),
        cmocka_unit_test(agrees_with_a_plain_model_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
