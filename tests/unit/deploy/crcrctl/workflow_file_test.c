#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "deploy/crcrctl/probe.h"

static struct workflow_events events(const char *yaml)
{
    struct workflow_events e;
    struct why why = { "" };
    if (workflow_file_read(str_of(yaml), "ci.yml", &e, &why))
        fail_msg("%s", why.text);
    return e;
}

static void every_form_of_on_is_understood(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "on: repository_dispatch",
        "on: [push, repository_dispatch]",
        "on:\n  - repository_dispatch",
        "on:\n  repository_dispatch:",
        "on:\n  push:\n  repository_dispatch:\n    types: [pull_request, push]",
        "\"on\":\n  repository_dispatch:\n    types:\n      - push\n      - pull_request",
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct workflow_events e = events(forms[i]);
        assert_true(e.listens && e.pull_request && e.push);
    }
}

static void types_that_are_named_are_the_only_ones(void **state)
{
    (void)state;
    struct workflow_events e = events("on: {repository_dispatch: {types: pull_request}}");
    assert_true(e.listens && e.pull_request && !e.push);
    e = events("on: {repository_dispatch: {types: [deploy]}}");
    assert_true(e.listens && !e.pull_request && !e.push);
}

static void other_events_are_not_ours(void **state)
{
    (void)state;
    static const char *const forms[] = { "",
                                         "on: push",
                                         "on: {push: {}, workflow_dispatch: {}}",
                                         "jobs: {repository_dispatch: {}}",
                                         "on: 7",
                                         "[on]" };
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        assert_false(events(forms[i]).listens);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct workflow_events e;
    struct why why = { "" };
    assert_int_equal(workflow_file_read(STR_LIT("on: [push"), "ci.yml", &e, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "ci.yml:"));
}

static void our_own_template_listens(void **state)
{
    (void)state;
    static char text[64 << 10];
    FILE *file = fopen(SOURCE_DIR "/deploy/downstream/workflow.yml", "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    struct workflow_events e = events(text);
    assert_true(e.listens && e.pull_request && e.push);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_on_is_understood),
        cmocka_unit_test(types_that_are_named_are_the_only_ones),
        cmocka_unit_test(other_events_are_not_ours),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(our_own_template_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
