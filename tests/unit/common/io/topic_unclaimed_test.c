#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/io/topic_unclaimed.h"

static struct topic_unclaimed inherited(int64_t committed, const char *metadata)
{
    struct topic_unclaimed u;
    topic_unclaimed_init(&u, true);
    topic_unclaimed_inherit(&u, committed, str_of(metadata));
    return u;
}

static void what_one_owner_tells_the_next_one_inherits(void **state)
{
    char text[TOPIC_UNCLAIMED_TEXT_SIZE];
    (void)state;
    topic_unclaimed_text(700, 200, text);
    assert_string_equal(text, "unclaimed:700");
    struct topic_unclaimed u = inherited(200, text);
    assert_true(topic_unclaimed_was(&u, 200));
    assert_true(topic_unclaimed_was(&u, 699));
    assert_false(topic_unclaimed_was(&u, 700));
    assert_true(topic_unclaimed_may_be(&u, 699));
    assert_false(topic_unclaimed_may_be(&u, 700));
}

static void it_is_carried_until_the_committed_offset_has_reached_it(void **state)
{
    char text[TOPIC_UNCLAIMED_TEXT_SIZE];
    (void)state;
    topic_unclaimed_text(700, 699, text);
    assert_string_equal(text, "unclaimed:700");
    topic_unclaimed_text(700, 700, text);
    assert_string_equal(text, "");
    struct topic_unclaimed u = inherited(700, "unclaimed:700");
    assert_false(topic_unclaimed_was(&u, 699));
}

static void what_we_tell_says_nothing_of_an_earlier_owner(void **state)
{
    (void)state;
    struct topic_unclaimed u = inherited(10, "");
    assert_false(topic_unclaimed_may_be(&u, 10));
    topic_unclaimed_told(&u, 510);
    assert_true(topic_unclaimed_may_be(&u, 509));
    assert_false(topic_unclaimed_was(&u, 10));
    topic_unclaimed_told(&u, 400);
    assert_int_equal(u.until, 510);
}

static void what_comes_after_the_end_that_we_saw_was_in_nobodys_hands(void **state)
{
    (void)state;
    struct topic_unclaimed u = inherited(200, "unclaimed:700");
    topic_unclaimed_end(&u, 210);
    assert_true(topic_unclaimed_was(&u, 209));
    assert_false(topic_unclaimed_was(&u, 210));
    assert_true(topic_unclaimed_may_be(&u, 699)); /* told is told */
    topic_unclaimed_end(&u, 900);
    assert_false(topic_unclaimed_was(&u, 210));
}

static void everything_may_be_until_the_metadata_is_known(void **state)
{
    struct topic_unclaimed u;
    (void)state;
    topic_unclaimed_init(&u, true);
    assert_true(topic_unclaimed_was(&u, 1000000));
    assert_false(topic_unclaimed_may_be(&u, 0));
    topic_unclaimed_init(&u, false); /* a reader that does not ask */
    assert_false(topic_unclaimed_was(&u, 0));
}

static void metadata_of_others_says_nothing(void **state)
{
    static const char *const foreign[] = { NULL,
                                           "",
                                           "unclaimed",
                                           "unclaimed:",
                                           "unclaimed:12x",
                                           "unclaimed:-900",
                                           "unclaimed:99999999999999999999",
                                           " unclaimed:900",
                                           "host-7" };
    (void)state;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        struct topic_unclaimed u = inherited(5, foreign[i]);
        assert_true(u.known);
        assert_int_equal(u.until, 0);
        assert_false(topic_unclaimed_was(&u, 5));
    }
    struct topic_unclaimed u = inherited(-1, "unclaimed:900"); /* nothing was committed */
    assert_false(topic_unclaimed_was(&u, 0));
}

static void it_goes_with_the_log_it_was_told_of(void **state)
{
    (void)state;
    struct topic_unclaimed u = inherited(200, "unclaimed:700");
    topic_unclaimed_see(&u, 200);
    assert_true(topic_unclaimed_was(&u, 300));
    topic_unclaimed_see(&u, 0); /* the topic was made anew */
    assert_false(topic_unclaimed_was(&u, 300));
    assert_int_equal(u.until, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_owner_tells_the_next_one_inherits),
        cmocka_unit_test(it_is_carried_until_the_committed_offset_has_reached_it),
        cmocka_unit_test(what_we_tell_says_nothing_of_an_earlier_owner),
        cmocka_unit_test(what_comes_after_the_end_that_we_saw_was_in_nobodys_hands),
        cmocka_unit_test(everything_may_be_until_the_metadata_is_known),
        cmocka_unit_test(metadata_of_others_says_nothing),
        cmocka_unit_test(it_goes_with_the_log_it_was_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
