#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "deploy/crcrctl/probe.h"

enum { APP, WORKFLOW, ALLOWLIST, DISPATCH, CALLBACK, CHECK };

#define DAY ((int64_t)86400000)

static struct allowlist *list_of(const char *yaml)
{
    struct allowlist *list;
    struct why why = { "" };
    if (allowlist_parse(&list, "allowlist", str_of(yaml), &why))
        fail_msg("%s", why.text);
    return list;
}

/* A repository at L2 with everything in place. */
static struct probe_facts facts_of(const struct allowlist *list)
{
    struct probe_facts f = {
        .repo = STR_LIT("org/a"),
        .list = list,
        .source = "https://example.org/allowlist.yml",
        .level_since_ms = DAY,
        .app = PROBE_ANSWERED,
        .app_text = "installation 7",
        .workflows = PROBE_ANSWERED,
        .n_workflows = 2,
        .listening = "pytorch.yml",
        .events = { true, true, true },
        .dispatch = { 2 * DAY, "d-1", "dispatched", "" },
        .callback = { 2 * DAY, "d-1", "success", "" },
        .check = PROBE_ANSWERED,
    };
    return f;
}

static struct probe_line line(const struct probe_facts *f, int which)
{
    struct probe_line lines[PROBE_LINES];
    probe_check(f, lines);
    return lines[which];
}

static void all_is_well_at_l2(void **state)
{
    (void)state;
    struct allowlist *list = list_of("L2: [Org/A]");
    struct probe_facts f = facts_of(list);
    struct probe_line lines[PROBE_LINES];
    probe_check(&f, lines);
    for (size_t i = 0; i < PROBE_LINES; i++) {
        assert_int_equal(lines[i].state, i == CHECK ? PROBE_NOT_EXPECTED : PROBE_OK);
        assert_string_equal(lines[i].todo, "");
    }
    assert_false(probe_has_todo(lines));
    assert_non_null(strstr(lines[ALLOWLIST].text, "L2 since 1970-01-02 00:00, line 1"));
    allowlist_free(list);
}

static void each_missing_thing_says_what_to_do_next(void **state)
{
    (void)state;
    struct allowlist *other = list_of("L1: [org/b]"), *l2 = list_of("L2: [org/a]");
    struct probe_facts f = facts_of(other);
    assert_int_equal(line(&f, ALLOWLIST).state, PROBE_TODO);
    assert_non_null(strstr(line(&f, ALLOWLIST).todo, "`- org/a` below L1"));
    f = facts_of(NULL);
    assert_int_equal(line(&f, ALLOWLIST).state, PROBE_TODO);
    f = facts_of(l2);
    f.app = PROBE_REFUSED;
    assert_non_null(strstr(line(&f, APP).todo, "install the App"));
    f = facts_of(l2);
    f.n_workflows = 0;
    assert_non_null(strstr(line(&f, WORKFLOW).todo, "workflow.yml"));
    f = facts_of(l2);
    f.listening[0] = '\0';
    assert_non_null(strstr(line(&f, WORKFLOW).text, "none of 2 workflows"));
    f = facts_of(l2);
    f.events.pull_request = false;
    assert_non_null(strstr(line(&f, WORKFLOW).todo, "types:"));
    f = facts_of(l2);
    f.dispatch.at_ms = 0;
    assert_int_equal(line(&f, DISPATCH).state, PROBE_TODO);
    f = facts_of(l2);
    snprintf(f.dispatch.outcome, sizeof(f.dispatch.outcome), "failed");
    assert_non_null(strstr(line(&f, DISPATCH).todo, "crcrctl trace d-1"));
    f = facts_of(l2);
    f.callback.at_ms = 0;
    assert_non_null(strstr(line(&f, CALLBACK).todo, "CRCR_CALLBACK_URL"));
    allowlist_free(other);
    allowlist_free(l2);
}

static void what_a_level_does_not_have_is_not_missed(void **state)
{
    (void)state;
    struct allowlist *l1 = list_of("L1: [org/a]"), *none = list_of("L1: [org/b]");
    struct allowlist *nightly = list_of("L2: [{org/a: {events: [nightly]}}]");
    struct probe_facts f = facts_of(l1);
    f.callback.at_ms = 0;
    assert_int_equal(line(&f, CALLBACK).state, PROBE_NOT_EXPECTED);
    assert_non_null(strstr(line(&f, CALLBACK).todo, "L2"));
    assert_int_equal(line(&f, CHECK).state, PROBE_NOT_EXPECTED);
    f = facts_of(none);
    f.dispatch.at_ms = 0;
    assert_int_equal(line(&f, DISPATCH).state, PROBE_NOT_EXPECTED);
    f = facts_of(nightly);
    f.dispatch.at_ms = 0;
    assert_int_equal(line(&f, DISPATCH).state, PROBE_NOT_EXPECTED);
    allowlist_free(l1);
    allowlist_free(none);
    allowlist_free(nightly);
}

static void check_runs_begin_at_l3_and_need_the_label_there(void **state)
{
    (void)state;
    struct allowlist *l3 = list_of("L3: {npu: {org/a: []}}"), *l4 = list_of("L4: [org/a]");
    struct demotion demotion = { .reason = (char *)(uintptr_t) "pass_rate 80.0 %" };
    struct probe_facts f = facts_of(l3);
    assert_non_null(strstr(line(&f, CHECK).todo, "ciflow/crcr/npu"));
    snprintf(f.check_text, sizeof(f.check_text), "crcr/org/a/ci/test, completed, id 9");
    assert_int_equal(line(&f, CHECK).state, PROBE_OK);
    f.demotion = &demotion;
    assert_int_equal(line(&f, ALLOWLIST).state, PROBE_TODO);
    assert_non_null(strstr(line(&f, ALLOWLIST).text, "pass_rate 80.0 %"));
    f = facts_of(l4);
    assert_int_equal(line(&f, CHECK).state, PROBE_TODO);
    assert_null(strstr(line(&f, CHECK).todo, "label"));
    allowlist_free(l3);
    allowlist_free(l4);
}

static void what_was_not_looked_at_is_not_called_missing(void **state)
{
    (void)state;
    struct allowlist *l3 = list_of("L3: {npu: {org/a: []}}");
    struct probe_facts f = facts_of(l3);
    struct probe_line lines[PROBE_LINES];
    struct buf CLEANUP(buf_clear) text;
    f.app = f.workflows = f.check = PROBE_NOT_ASKED;
    snprintf(f.app_text, sizeof(f.app_text), "not looked at: GITHUB_APP_ID is not set");
    probe_check(&f, lines);
    assert_int_equal(lines[APP].state, PROBE_UNKNOWN);
    assert_int_equal(lines[WORKFLOW].state, PROBE_UNKNOWN);
    assert_int_equal(lines[CHECK].state, PROBE_UNKNOWN);
    assert_false(probe_has_todo(lines));
    buf_init(&text, 10000);
    probe_text(&f, lines, &text);
    assert_non_null(strstr(text.ptr, "GITHUB_APP_ID is not set"));
    assert_non_null(strstr(text.ptr, "3 could not be looked at"));
    allowlist_free(l3);
}

static void a_workflow_that_cannot_be_read_may_be_the_one(void **state)
{
    (void)state;
    struct allowlist *l2 = list_of("L2: [org/a]");
    struct probe_facts f = facts_of(l2);
    f.listening[0] = '\0';
    snprintf(f.unreadable, sizeof(f.unreadable), "ci.yml:3:1: an anchor");
    assert_int_equal(line(&f, WORKFLOW).state, PROBE_UNKNOWN);
    assert_non_null(strstr(line(&f, WORKFLOW).text, "ci.yml:3:1"));
    allowlist_free(l2);
}

static void an_outcome_that_nobody_knows_is_not_called_ok(void **state)
{
    static const struct {
        const char *outcome;
        enum probe_state state;
    } rows[] = { { "dispatched", PROBE_OK },
                 { "duplicate", PROBE_OK },
                 { "failed", PROBE_TODO },
                 { "unknown", PROBE_UNDECIDED },
                 { "waiting", PROBE_UNDECIDED },
                 { "", PROBE_UNDECIDED },
                 { "of_a_later_version", PROBE_UNDECIDED } };
    (void)state;
    struct allowlist *l2 = list_of("L2: [org/a]");
    struct probe_facts f = facts_of(l2);
    struct probe_line lines[PROBE_LINES];
    struct buf CLEANUP(buf_clear) text = BUF_INIT(10000);
    snprintf(f.dispatch.detail, sizeof(f.dispatch.detail), "no answer was seen");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(f.dispatch.outcome, sizeof(f.dispatch.outcome), "%s", rows[i].outcome);
        assert_int_equal(line(&f, DISPATCH).state, rows[i].state);
        if (rows[i].state != PROBE_OK)
            assert_non_null(strstr(line(&f, DISPATCH).text, ": no answer was seen"));
    }
    probe_check(&f, lines);
    assert_false(probe_has_todo(lines));
    probe_text(&f, lines, &text);
    assert_non_null(strstr(text.ptr, "  ?        last dispatch"));
    assert_non_null(strstr(text.ptr, "no known outcome yet"));
    assert_null(strstr(text.ptr, "All is as it should be"));
    buf_reset(&text);
    probe_json(&f, lines, &text);
    assert_non_null(strstr(text.ptr, "\"state\":\"undecided\""));
    f.callback.outcome[0] = '\0';
    assert_int_equal(line(&f, CALLBACK).state, PROBE_TODO);
    allowlist_free(l2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well_at_l2),
        cmocka_unit_test(each_missing_thing_says_what_to_do_next),
        cmocka_unit_test(what_a_level_does_not_have_is_not_missed),
        cmocka_unit_test(check_runs_begin_at_l3_and_need_the_label_there),
        cmocka_unit_test(what_was_not_looked_at_is_not_called_missing),
        cmocka_unit_test(a_workflow_that_cannot_be_read_may_be_the_one),
        cmocka_unit_test(an_outcome_that_nobody_knows_is_not_called_ok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
