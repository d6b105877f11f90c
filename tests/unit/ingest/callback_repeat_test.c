#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/callback_repeat.h"

static struct answer answer;

static const char *view_says(enum job_state reported, const char *conclusion, enum job_state known,
                             const char *known_conclusion)
{
    struct callback fields = { .status = reported };
    str_copy(fields.conclusion, sizeof(fields.conclusion), str_of(conclusion));
    const char *status;
    answer = (struct answer){ 0 };
    return callback_repeat_check(&fields, known, known_conclusion, &status, &answer) ? status
                                                                                     : NULL;
}

static void new_state_is_answered_with_itself(void **state)
{
    (void)state;
    assert_string_equal(view_says(JOB_IN_PROGRESS, "", JOB_NONE, ""), "in_progress");
    assert_string_equal(view_says(JOB_COMPLETED, "success", JOB_IN_PROGRESS, ""), "completed");
    assert_string_equal(view_says(JOB_COMPLETED, "success", JOB_TIMED_OUT, ""), "completed");
}

static void state_already_reached_is_a_duplicate(void **state)
{
    (void)state;
    assert_string_equal(view_says(JOB_IN_PROGRESS, "", JOB_IN_PROGRESS, ""), "duplicate");
    assert_string_equal(view_says(JOB_IN_PROGRESS, "", JOB_COMPLETED, "success"), "duplicate");
    assert_string_equal(view_says(JOB_COMPLETED, "success", JOB_COMPLETED, "success"), "duplicate");
}

static void another_conclusion_for_a_completed_attempt_is_409(void **state)
{
    (void)state;
    assert_null(view_says(JOB_COMPLETED, "failure", JOB_COMPLETED, "success"));
    assert_int_equal(answer.status, 409);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_state_is_answered_with_itself),
        cmocka_unit_test(state_already_reached_is_a_duplicate),
        cmocka_unit_test(another_conclusion_for_a_completed_attempt_is_409),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
