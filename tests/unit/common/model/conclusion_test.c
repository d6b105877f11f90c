/* How a job ended, in a callback: with a conclusion, without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/callback.h"

#define BODY(type, workflow)                                                                       \
    "{\"event_type\":\"" type                                                                      \
    "\",\"delivery_id\":\"d-1\",\"workflow\":{\"name\":\"CI\",\"run_id\":17,"                      \
    "\"status\":" workflow "}}"

static struct callback parse(const char *body)
{
    struct callback c;
    struct why why = { "" };
    if (callback_parse(str_of(body), STR_NONE, &c, &why))
        fail_msg("refused: %s\n%s", why.text, body);
    return c;
}

/* The body with its %s filled in. */
static void body_fill(char body[600], const char *form, const char *part)
{
    const char *at = strstr(form, "%s");
    (void)snprintf(body, 600, "%.*s%s%s", (int)(at - form), form, part, at + 2);
}

/* The step that would have set it failed before it did: the job has failed. A run that the
 * downstream starts itself may not know; a job in progress has none yet. */
static void completed_without_a_conclusion_counts_as_failure(void **state)
{
    (void)state;
    static const char *const without[] = { "", ",\"conclusion\":null", ",\"conclusion\":\"\"" };
    static const struct {
        const char *body, *conclusion;
        bool no_conclusion;
    } cases[] = {
        { BODY("pull_request", "\"completed\"%s"), "failure", true },
        { BODY("push", "\"completed\"%s"), "failure", true },
        { BODY("", "\"completed\"%s"), "failure", true },
        { BODY("nightly", "\"completed\"%s"), "", false },
        { BODY("periodic", "\"completed\"%s"), "", false },
        { BODY("pull_request", "\"in_progress\"%s"), "", false },
    };
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            char body[600];
            body_fill(body, cases[k].body, without[i]);
            struct callback c = parse(body);
            assert_string_equal(c.conclusion, cases[k].conclusion);
            assert_int_equal(c.no_conclusion, cases[k].no_conclusion);
            callback_clear(&c);
        }
    struct callback c = parse(BODY("push", "\"completed\",\"conclusion\":\"failure\""));
    assert_string_equal(c.conclusion, "failure");
    assert_false(c.no_conclusion);
    callback_clear(&c);
}

static void a_conclusion_that_is_none_is_refused_with_those_that_are(void **state)
{
    (void)state;
    static const char *const wrong[] = { "\"won\"", "\" \"", "\"Success\"", "5", "0",
                                         "true",    "false", "[]",          "{}" };
    static const char *const bodies[] = { BODY("pull_request", "\"completed\",\"conclusion\":%s"),
                                          BODY("nightly", "\"completed\",\"conclusion\":%s") };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        for (size_t k = 0; k < 2; k++) {
            char body[600];
            struct callback c;
            struct why why = { "" };
            body_fill(body, bodies[k], wrong[i]);
            if (callback_parse(str_of(body), STR_NONE, &c, &why) != ERR_REFUSE)
                fail_msg("was taken: %s", body);
            assert_non_null(strstr(why.text, "workflow.conclusion "));
            assert_non_null(strstr(why.text, "accepted are success, failure, cancelled, timed_out, "
                                             "neutral, skipped, action_required and stale"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completed_without_a_conclusion_counts_as_failure),
        cmocka_unit_test(a_conclusion_that_is_none_is_refused_with_those_that_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
