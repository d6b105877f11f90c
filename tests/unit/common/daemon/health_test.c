#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/daemon/health.h"

enum { T = 1000000, SILENT = HEALTH_SILENT_MS, PATIENCE = HEALTH_STALLED_MS };

static void checked(const struct health *h, int64_t now_ms, const char *reason)
{
    struct why why = { "" };
    enum err err = health_check(h, now_ms, &why);
    assert_int_equal(err, reason ? ERR_STOP : OK);
    if (reason && !strstr(why.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
}

static void a_loop_that_turns_with_nothing_to_do_is_healthy(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    h.alive_ms = T + 100 * PATIENCE;
    checked(&h, T + 100 * PATIENCE, NULL); /* lag unknown */
    health_lag(&h, 0, T + 100 * PATIENCE);
    checked(&h, T + 100 * PATIENCE, NULL);
}

static void a_silent_loop_is_not(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    checked(&h, T + SILENT, NULL);
    checked(&h, T + SILENT + 1, "no sign of life for 25 s");
}

static void an_ended_thread_is_not(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    h.ended = true;
    checked(&h, T, "ended");
}

static void lag_without_progress_is_not(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    health_lag(&h, 7, T);
    h.alive_ms = T + PATIENCE + 1;
    checked(&h, T + PATIENCE, NULL);
    checked(&h, T + PATIENCE + 1, "7 records wait");
    h.progress_ms = T + 1;
    checked(&h, T + PATIENCE + 1, NULL);
}

static void lag_that_begins_after_a_quiet_hour_has_its_time(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    health_lag(&h, 0, T);
    int64_t later = T + 3600000;
    h.alive_ms = later;
    health_lag(&h, 5, later);
    checked(&h, later, NULL);
    health_lag(&h, 6, later + PATIENCE); /* more of it is no progress */
    h.alive_ms = later + PATIENCE + 1;
    checked(&h, later + PATIENCE + 1, "6 records wait");
}

static void waiting_on_purpose_is_healthy_and_ends_with_its_time(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    health_lag(&h, 5, T);
    health_waiting(&h, true, T);
    int64_t later = T + 3600000;
    h.alive_ms = later;
    checked(&h, later, NULL);
    health_waiting(&h, false, later);
    checked(&h, later, NULL);
    h.alive_ms = later + PATIENCE + 1;
    checked(&h, later + PATIENCE + 1, "nothing moved");
}

static void the_backlog_is_the_age_of_the_oldest_record_in_hand(void **state)
{
    (void)state;
    const int64_t wall = 1700000000000;
    struct health h;
    health_init(&h, T);
    assert_float_equal(health_backlog_seconds(&h, T, wall), -1, 1e-9); /* nothing known yet */
    health_lag(&h, 0, T);
    health_oldest(&h, wall - 5000); /* done, only not committed: it waits no more */
    assert_float_equal(health_backlog_seconds(&h, T, wall), 0, 1e-9);
    health_lag(&h, 3, T);
    assert_float_equal(health_backlog_seconds(&h, T, wall), 5, 1e-9);
    health_oldest(&h, wall + 100); /* written by a clock ahead of ours */
    assert_float_equal(health_backlog_seconds(&h, T, wall), 0, 1e-9);
}

static void a_backlog_that_nobody_reads_counts_from_the_last_progress(void **state)
{
    (void)state;
    struct health h;
    health_init(&h, T);
    health_lag(&h, 3, T);
    health_oldest(&h, -1);
    assert_float_equal(health_backlog_seconds(&h, T + 7000, 0), 7, 1e-9);
    assert_float_equal(health_stalled_seconds(&h, T + 7000), 7, 1e-9);
    health_lag(&h, 0, T + 8000);
    assert_float_equal(health_stalled_seconds(&h, T + 9000), 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_turns_with_nothing_to_do_is_healthy),
        cmocka_unit_test(a_silent_loop_is_not),
        cmocka_unit_test(an_ended_thread_is_not),
        cmocka_unit_test(lag_without_progress_is_not),
        cmocka_unit_test(lag_that_begins_after_a_quiet_hour_has_its_time),
        cmocka_unit_test(waiting_on_purpose_is_healthy_and_ends_with_its_time),
        cmocka_unit_test(the_backlog_is_the_age_of_the_oldest_record_in_hand),
        cmocka_unit_test(a_backlog_that_nobody_reads_counts_from_the_last_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
