/* Which of the App's webhooks nobody has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "deploy/crcrctl/deliveries.h"

#define NOW  1763700000000
#define HOUR 3600000

static struct deliveries all;
static struct buf page;
static struct why why;

static int start(void **state)
{
    (void)state;
    deliveries_init(&all);
    buf_init(&page, 1 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    deliveries_clear(&all);
    buf_clear(&page);
    return 0;
}

static void row(const char *guid, const char *event, const char *action, int status, int64_t at_ms,
                bool redelivery)
{
    static int id = 1000;
    char at[CLOCK_TEXT_SIZE];
    clock_format(at_ms, at);
    buf_printf(&page,
               "%s{\"id\":%d,\"guid\":\"%s\",\"event\":\"%s\",\"action\":%s%s%s,\"status_code\":%d,"
               "\"delivered_at\":\"%s\",\"redelivery\":%s}",
               page.len ? "," : "[", --id, guid, event, action ? "\"" : "",
               action ? action : "null", action ? "\"" : "", status, at,
               redelivery ? "true" : "false");
}

static bool read_page(void)
{
    bool older;
    buf_putc(&page, ']');
    if (deliveries_add(&all, buf_str(&page), NOW - 24 * HOUR, NOW, &older, &why))
        fail_msg("%s", why.text);
    buf_reset(&page);
    return older;
}

static enum delivery_state state_of(const char *guid)
{
    const struct delivery *one = deliveries_find(&all, str_of(guid));
    assert_non_null(one);
    return one->state;
}

static void one_successful_attempt_is_enough_in_any_order(void **state)
{
    (void)state;
    row("a", "push", NULL, 202, NOW - 1, true);
    row("b", "push", NULL, 500, NOW - 2, true);
    row("a", "push", NULL, 500, NOW - 3, false);
    read_page();
    row("b", "push", NULL, 200, NOW - 4, false);
    row("c", "push", NULL, 301, NOW - 5, false);
    row("d", "push", NULL, 502, NOW - 6, false);
    read_page();
    assert_int_equal(state_of("a"), DELIVERY_DELIVERED);
    assert_int_equal(state_of("b"), DELIVERY_DELIVERED);
    assert_int_equal(state_of("c"), DELIVERY_MISSING);
    assert_int_equal(state_of("d"), DELIVERY_MISSING);
    assert_int_equal(all.attempts, 6);
}

static void the_missing_come_oldest_first_by_their_first_attempt(void **state)
{
    (void)state;
    struct delivery **missing;
    row("old", "push", NULL, 500, NOW - 1, true);
    row("young", "push", NULL, 500, NOW - 2, false);
    row("old", "push", NULL, 500, NOW - 3 * HOUR, false);
    read_page();
    assert_int_equal(deliveries_missing(&all, &missing), 2);
    assert_string_equal(missing[0]->guid.ptr, "old");
    assert_int_equal(missing[0]->first_ms, NOW - 3 * HOUR);
    assert_true(missing[0]->has_first);
    free(missing);
}

static void a_first_attempt_out_of_sight_is_known_to_be_so(void **state)
{
    (void)state;
    row("a", "push", NULL, 500, NOW - 1, true);
    read_page();
    assert_false(deliveries_find(&all, STR_LIT("a"))->has_first);
}

static void without_an_answer_it_waits_a_minute(void **state)
{
    (void)state;
    row("now", "push", NULL, 0, NOW - 1000, false);
    row("long", "push", NULL, 0, NOW - 61000, false);
    row("again", "push", NULL, 0, NOW - 1000, true);
    row("again", "push", NULL, 500, NOW - 90000, false);
    read_page();
    assert_int_equal(state_of("now"), DELIVERY_PENDING);
    assert_int_equal(state_of("long"), DELIVERY_MISSING);
    assert_int_equal(state_of("again"), DELIVERY_PENDING);
}

static void what_is_none_of_ours_is_skipped_with_its_reason(void **state)
{
    (void)state;
    struct buf text;
    row("a", "issues", "opened", 500, NOW - 1, false);
    row("b", "check_run", "completed", 500, NOW - 2, false);
    row("c", "ping", NULL, 500, NOW - 3, false);
    row("not a guid!", "push", NULL, 500, NOW - 4, false);
    row("d", "check_run", "rerequested", 500, NOW - 5, false);
    read_page();
    buf_init(&text, 4096);
    deliveries_sum(&all, false, &text);
    assert_string_equal(text.ptr,
                        "5 deliveries (5 attempts): 0 delivered, 0 already here, 0 published, 0 "
                        "not answered yet, 4 skipped (other_event 1, other_action 2, "
                        "guid_malformed 1), 0 failed, 1 not looked at");
    buf_clear(&text);
}

static void attempts_before_the_time_asked_for_end_the_reading(void **state)
{
    (void)state;
    row("a", "push", NULL, 500, NOW - 1, false);
    assert_false(read_page());
    row("b", "push", NULL, 500, NOW - 23 * HOUR, false);
    row("c", "push", NULL, 500, NOW - 25 * HOUR, false);
    assert_true(read_page());
    assert_null(deliveries_find(&all, STR_LIT("c")));
    assert_non_null(deliveries_find(&all, STR_LIT("b")));
}

static void doubted_all_that_counts_is_missing_but_what_is_none_of_ours(void **state)
{
    (void)state;
    row("a", "push", NULL, 202, NOW - 1, false);
    row("b", "push", NULL, 502, NOW - 2, false);
    row("c", "star", "created", 200, NOW - 3, false);
    read_page();
    deliveries_doubt(&all);
    assert_int_equal(state_of("a"), DELIVERY_MISSING);
    assert_int_equal(state_of("b"), DELIVERY_MISSING);
    assert_int_equal(state_of("c"), DELIVERY_SKIPPED);
}

static void what_is_no_list_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const pages[] = { "", "{}", "[1]", "[{\"id\":1}]",
                                         "[{\"id\":1,\"guid\":\"a\",\"delivered_at\":\"soon\"}]" };
    bool older;
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        why.text[0] = 0;
        assert_int_equal(deliveries_add(&all, str_of(pages[i]), 0, NOW, &older, &why), ERR_REFUSE);
        assert_true(why.text[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_successful_attempt_is_enough_in_any_order, start, end),
        cmocka_unit_test_setup_teardown(the_missing_come_oldest_first_by_their_first_attempt, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_first_attempt_out_of_sight_is_known_to_be_so, start, end),
        cmocka_unit_test_setup_teardown(without_an_answer_it_waits_a_minute, start, end),
        cmocka_unit_test_setup_teardown(what_is_none_of_ours_is_skipped_with_its_reason, start,
                                        end),
        cmocka_unit_test_setup_teardown(attempts_before_the_time_asked_for_end_the_reading, start,
                                        end),
        cmocka_unit_test_setup_teardown(doubted_all_that_counts_is_missing_but_what_is_none_of_ours,
                                        start, end),
        cmocka_unit_test_setup_teardown(what_is_no_list_is_refused_with_a_reason, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
