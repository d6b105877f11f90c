#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "reporter/web/dispatch_day.h"

#define NOW    1790000000000LL
#define MINUTE 60000LL

static struct dispatch_day *day;

static int start(void **state)
{
    (void)state;
    day = dispatch_day_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    dispatch_day_free(day);
    return 0;
}

static struct outcome outcome(enum outcome_kind kind, int status, int64_t at_ms)
{
    struct outcome o = { .outcome = kind, .http_status = status, .at_ms = at_ms };
    strcpy(o.kind, "dispatch");
    strcpy(o.repo, "org/a");
    return o;
}

static void add(enum outcome_kind kind, int status, int64_t at_ms)
{
    struct outcome o = outcome(kind, status, at_ms);
    dispatch_day_add(day, &o, NOW);
}

static void dispatched(int64_t at_ms, int64_t after_ms, const char *source)
{
    struct outcome o = outcome(OUTCOME_DISPATCHED, 204, at_ms);
    o.received_ms = at_ms - after_ms;
    strcpy(o.source, source);
    dispatch_day_add(day, &o, NOW);
}

/* Both members, to be released. */
static json_t *shown(int64_t now_ms)
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    buf_putc(&text, '{');
    dispatch_day_put(&text, day, now_ms);
    buf_putc(&text, '}');
    json_t *root = json_loads(buf_str(&text).ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

/* Of the dispatches; -1: null. */
static double number(const char *name, int64_t now_ms)
{
    json_t *root = shown(now_ms);
    json_t *found = json_object_get(json_object_get(root, "dispatches"), name);
    assert_non_null(found);
    double n = json_is_null(found) ? -1 : json_number_value(found);
    json_decref(root);
    return n;
}

static void percentiles_are_within_5_percent(void **state)
{
    (void)state;
    for (int i = 1; i <= 1000; i++)
        dispatched(NOW - i * MINUTE, i * 10, "");
    dispatched(NOW, 36000000, ""); /* one that is far off */
    assert_true(number("dispatched", NOW) == 1001);
    double p50 = number("p50_seconds", NOW), p99 = number("p99_seconds", NOW);
    assert_true(p50 >= 4.75 && p50 <= 5.25);
    assert_true(p99 >= 9.40 && p99 <= 10.40);
}

static void what_was_redelivered_counts_and_has_no_time(void **state)
{
    (void)state;
    dispatched(NOW - MINUTE, 7200000, "redelivered");
    assert_true(number("dispatched", NOW) == 1);
    assert_true(number("p50_seconds", NOW) == -1);
    assert_true(number("p99_seconds", NOW) == -1);
}

static void a_day_has_24_hours(void **state)
{
    (void)state;
    int64_t later = NOW + 3 * 60 * MINUTE;
    add(OUTCOME_FAILED, 404, NOW - 25 * 60 * MINUTE); /* read all the same, from a mock broker */
    dispatched(NOW - 22 * 60 * MINUTE, 100, "");
    add(OUTCOME_FAILED, 404, NOW - MINUTE);
    assert_true(number("dispatched", NOW) == 1);
    assert_true(number("failed", NOW) == 1);
    assert_true(number("dispatched", later) == 0);
    assert_true(number("p99_seconds", later) == -1);
    assert_true(number("failed", later) == 1);
}

/* The one downstream whose breaker is open and when it answered, "" for never; NULL: there is none.
 */
static const char *broken(int64_t now_ms)
{
    static char answered[CLOCK_TEXT_SIZE];
    json_t *root = shown(now_ms);
    const json_t *breakers = json_object_get(root, "breakers");
    const json_t *list = json_object_get(breakers, "downstreams"), *one = json_array_get(list, 0);
    size_t n = json_array_size(list);
    assert_in_range(n, 0, 1);
    assert_int_equal(json_integer_value(json_object_get(breakers, "open")), n);
    if (n) {
        const char *text = json_string_value(json_object_get(one, "answered_at"));
        assert_string_equal(json_string_value(json_object_get(one, "repo")), "org/a");
        assert_non_null(json_string_value(json_object_get(one, "put_off_at")));
        strcpy(answered, text ? text : "");
    }
    json_decref(root);
    return n ? answered : NULL;
}

static void what_an_open_breaker_puts_off_is_named_until_an_answer(void **state)
{
    (void)state;
    char before[CLOCK_TEXT_SIZE];
    struct outcome o = outcome(OUTCOME_WAITING, 0, NOW - MINUTE);
    strcpy(o.repo, "Org/A");
    strcpy(o.error, "our own budget is used up");
    dispatch_day_add(day, &o, NOW);
    assert_null(broken(NOW));
    o.reason = REASON_BREAKER;
    dispatch_day_add(day, &o, NOW);
    assert_string_equal(broken(NOW), "");
    assert_null(broken(NOW + 15 * MINUTE));
    add(OUTCOME_FAILED, 404, NOW - 6 * MINUTE); /* an answer before it, of another partition */
    add(OUTCOME_UNKNOWN, 502, NOW);             /* the probe */
    clock_format(NOW - 6 * MINUTE, before);
    assert_string_equal(broken(NOW), before);
    add(OUTCOME_FAILED, 404, NOW); /* a refusal is an answer */
    assert_null(broken(NOW));
}

/* The member "dispatches" of org/a; to be released. */
static json_t *shown_of_one(int64_t heard_ms, int64_t silent_ms)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(4096);
    buf_putc(&text, '{');
    dispatch_day_put_one(&text, day, STR_LIT("Org/A"), heard_ms, silent_ms, NOW);
    buf_putc(&text, '}');
    json_t *root = json_loads(buf_str(&text).ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_t *found = json_incref(json_object_get(root, "dispatches"));
    json_decref(root);
    return found;
}

static void calls_without_effect_since_the_last_that_github_took_are_counted(void **state)
{
    (void)state;
    json_t *one = shown_of_one(0, 0);
    assert_true(json_is_null(one));
    add(OUTCOME_FAILED, 404, NOW - 2 * MINUTE);
    add(OUTCOME_UNKNOWN, 502, NOW - MINUTE);
    dispatched(NOW - 3 * MINUTE, 100, ""); /* of another partition, read later */
    add(OUTCOME_FAILED, 404, NOW - 4 * MINUTE);
    add(OUTCOME_SUPERSEDED, 0, NOW);
    one = shown_of_one(0, 0);
    const json_t *last = json_object_get(one, "last");
    assert_int_equal(json_integer_value(json_object_get(one, "failed_in_a_row")), 2);
    assert_string_equal(json_string_value(json_object_get(last, "outcome")), "unknown");
    assert_int_equal(json_integer_value(json_object_get(last, "http_status")), 502);
    assert_true(json_is_false(json_object_get(one, "breaker_open")));
    json_decref(one);
    for (int i = 0; i < 2 * DISPATCH_FAILED_MAX; i++)
        add(OUTCOME_FAILED, 404, NOW - i);
    one = shown_of_one(0, 0);
    assert_int_equal(json_integer_value(json_object_get(one, "failed_in_a_row")),
                     DISPATCH_FAILED_MAX);
    json_decref(one);
}

/* Whether nothing was heard of it for too long. */
static bool is_silent(int64_t heard_ms, int64_t silent_ms)
{
    json_t *one = shown_of_one(heard_ms, silent_ms);
    bool silent = json_is_string(json_object_get(one, "silent_since"));
    json_decref(one);
    return silent;
}

static void who_is_dispatched_to_and_says_nothing_is_silent(void **state)
{
    (void)state;
    dispatched(NOW - 200 * MINUTE, 100, "");
    dispatched(NOW - MINUTE, 100, "");
    assert_true(is_silent(0, 180 * MINUTE));
    assert_true(is_silent(NOW - 300 * MINUTE, 180 * MINUTE));
    assert_false(is_silent(NOW - 100 * MINUTE, 180 * MINUTE)); /* the newest is not due yet */
    assert_false(is_silent(0, 240 * MINUTE));
    assert_false(is_silent(0, 0)); /* L1 reports nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(percentiles_are_within_5_percent, start, end),
        cmocka_unit_test_setup_teardown(what_was_redelivered_counts_and_has_no_time, start, end),
        cmocka_unit_test_setup_teardown(a_day_has_24_hours, start, end),
        cmocka_unit_test_setup_teardown(what_an_open_breaker_puts_off_is_named_until_an_answer,
                                        start, end),
        cmocka_unit_test_setup_teardown(
            calls_without_effect_since_the_last_that_github_took_are_counted, start, end),
        cmocka_unit_test_setup_teardown(who_is_dispatched_to_and_says_nothing_is_silent, start,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
