#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "reporter/web/badge.h"

static struct result_record job(char *event_type, char *run, char *conclusion)
{
    struct result_record r;
    result_record_init(&r);
    r.event_type = event_type;
    r.run_id = run;
    r.workflow_name = "ci";
    r.job_name = conclusion;
    r.run_attempt = "1";
    r.state = JOB_COMPLETED;
    r.conclusion = conclusion;
    return r;
}

static void assert_says(int level, int64_t completed, int64_t successful,
                        const struct result_record *jobs, size_t n, const char *text,
                        const char *colour)
{
    struct buf CLEANUP(buf_clear) image;
    buf_init(&image, 4096);
    badge_put(&image, level, completed, successful, jobs, n);
    assert_non_null(strstr(image.ptr, text));
    assert_non_null(strstr(image.ptr, colour));
}

static void it_says_level_and_pass_rate(void **state)
{
    (void)state;
    const struct result_record nightly = job("nightly", "1", "failure");
    assert_says(4, 2, 1, &nightly, 1, "L4, 50.0 % pass", "#b3261e");
    assert_says(3, 100, 94, NULL, 0, "L3, 94.0 % pass", "#8a5300");
    assert_says(2, 10000, 9999, NULL, 0, "L2, 99.9 % pass", "#176f2c");
    assert_says(2, 3, 3, NULL, 0, "L2, 100.0 % pass", "#176f2c");
}

static void without_pull_requests_it_says_how_the_newest_nightly_ended(void **state)
{
    (void)state;
    const struct result_record jobs[] = { job("nightly", "2", "success"),
                                          job("nightly", "2", "failure"),
                                          job("nightly", "1", "success") };
    assert_says(2, 0, 0, jobs, 3, "L2, nightly fails", "#b3261e");
    assert_says(2, 0, 0, &jobs[2], 1, "L2, nightly passes", "#176f2c");
    assert_says(0, 0, 0, NULL, 0, "not listed, no results", "#59636e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_level_and_pass_rate),
        cmocka_unit_test(without_pull_requests_it_says_how_the_newest_nightly_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
