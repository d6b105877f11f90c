#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"

static const struct {
    const char *text;
    int64_t ms;
} times[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "1970-01-01T00:00:00.001Z", 1 },
    { "1969-12-31T23:59:59.999Z", -1 },
    { "2026-11-21T03:20:00.123Z", 1795231200123 },
    { "2026-11-21t03:20:00.1z", 1795231200100 },
    { "2026-11-21T03:20:00.1239999Z", 1795231200123 },
    { "2026-11-21T04:20:00+01:00", 1795231200000 },
    { "2026-11-20T21:50:00-05:30", 1795231200000 },
    { "2024-02-29T00:00:00Z", 1709164800000 },
    { "2000-02-29T00:00:00Z", 951782400000 },
    { "2016-12-31T23:59:60Z", 1483228800000 }, /* a leap second */
    { "0000-01-01T00:00:00Z", -62167219200000 },
    { "9999-12-31T23:59:59.999Z", 253402300799999 },
};

static void rfc_3339_times_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t ms = 42;
        struct why why = { "" };
        if (clock_parse(str_of(times[i].text), &ms, &why) || ms != times[i].ms)
            fail_msg("%s gives %lld, not %lld: %s", times[i].text, (long long)ms,
                     (long long)times[i].ms, why.text);
    }
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "2026-11-21",
        "2026-11-21T03:20:00",
        "2026-11-21 03:20:00Z",
        "2026-11-21T03:20:00.Z",
        "2026-11-21T03:20:00Z ",
        "2026-13-21T03:20:00Z",
        "2026-00-21T03:20:00Z",
        "2026-02-29T03:20:00Z",
        "1900-02-29T03:20:00Z",
        "2026-11-00T03:20:00Z",
        "2026-11-31T03:20:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T03:60:00Z",
        "2026-11-21T03:20:61Z",
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
        "2026-11-21T03:20:00+24:00",
        "2026-11-21T03:20:00+0100",
        "26-11-21T03:20:00Z",
        "-026-11-21T03:20:00Z",
        "2026-1-21T03:20:00Z",
        "1795231200",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ms = 42;
        struct why why = { "" };
        if (clock_parse(str_of(bad[i]), &ms, &why) != ERR_REFUSE)
            fail_msg("%s was read", bad[i]);
        assert_int_equal(ms, 42);
        assert_non_null(strstr(why.text, "RFC 3339"));
    }
    assert_int_equal(clock_parse(STR_NONE, &(int64_t){ 0 }, NULL), ERR_REFUSE);
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    char text[CLOCK_TEXT_SIZE];
    clock_format(1795231200123, text);
    assert_string_equal(text, "2026-11-21T03:20:00.123Z");
    clock_format(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t ms;
        clock_format(times[i].ms, text);
        assert_int_equal(clock_parse(str_of(text), &ms, NULL), OK);
        assert_true(ms == times[i].ms);
    }
    clock_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    clock_format(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void clocks_agree_on_their_units(void **state)
{
    (void)state;
    assert_true(clock_wall_ms() > 1700000000000);
    int64_t ms = clock_mono_ms(), us = clock_mono_us();
    assert_true(us / 1000 - ms >= 0 && us / 1000 - ms < 5000);
    assert_true(clock_mono_us() >= us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_3339_times_are_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(clocks_agree_on_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
