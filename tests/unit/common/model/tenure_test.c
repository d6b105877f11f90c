#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/tenure.h"

static void add(struct tenure *t, const char *yaml, int64_t at_ms)
{
    struct allowlist *list;
    struct why why = { "" };
    if (allowlist_parse(&list, "allowlist", str_of(yaml), &why))
        fail_msg("%s", why.text);
    tenure_add(t, list, at_ms);
    allowlist_free(list);
}

static int64_t since(const struct tenure *t, const char *repo)
{
    return tenure_since_ms(t, str_of(repo));
}

static void tenure_begins_with_the_version_that_gave_the_level(void **state)
{
    (void)state;
    struct tenure *t = tenure_new();
    add(t, "L1: [org/a]\nL2: [org/b]", 10);
    add(t, "L2: [org/a, org/b]", 20);
    add(t, "L2: [ORG/A, org/b, org/c]", 30);
    assert_int_equal(since(t, "org/a"), 20);
    assert_int_equal(since(t, "Org/B"), 10);
    assert_int_equal(since(t, "org/c"), 30);
    assert_int_equal(since(t, "org/d"), -1);
    tenure_free(t);
}

static void leaving_the_level_or_the_list_starts_the_time_anew(void **state)
{
    (void)state;
    struct tenure *t = tenure_new();
    add(t, "L2: [org/a, org/b, org/c]", 10);
    add(t, "L2: [org/c]\nL3: {npu: {org/b: []}}", 20);
    assert_int_equal(since(t, "org/a"), -1);
    assert_int_equal(since(t, "org/b"), 20);
    add(t, "L2: [org/a, org/b, org/c]", 30);
    assert_int_equal(since(t, "org/a"), 30);
    assert_int_equal(since(t, "org/b"), 30);
    assert_int_equal(since(t, "org/c"), 10);
    tenure_free(t);
}

static void the_stays_at_a_level_add_up(void **state)
{
    (void)state;
    struct tenure *t = tenure_new();
    add(t, "L1: [org/b]\nL2: [org/a]", 10);
    add(t, "L3: {npu: {org/a: []}}", 20);
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/a"), 2, 50), 10);
    add(t, "L2: [ORG/A]", 30);
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/a"), 2, 50),
                     30); /* a demotion takes nothing */
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/a"), 3, 50), 10);
    for (int i = 0; i < 60; i++) /* more changes than the history keeps */
        add(t, i % 2 ? "L2: [org/a]" : "L1: [org/a]", 100 + i);
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/a"), 2, 160), 10 + 70 + 30);
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/b"), 2, 50), -1);
    assert_int_equal(tenure_total_ms(t, STR_LIT("org/c"), 2, 50), -1);
    tenure_free(t);
}

static void the_history_has_each_change_once_the_newest_first(void **state)
{
    (void)state;
    struct level_change changes[TENURE_CHANGES];
    struct tenure *t = tenure_new();
    add(t, "L1: [org/a]", 10);
    add(t, "L1: [Org/A]", 20);
    add(t, "L2: [org/a]", 30);
    add(t, "L2: [org/b]", 40);
    add(t, "L2: [org/a]", 50);
    assert_int_equal(tenure_history(t, STR_LIT("ORG/a"), changes), 4);
    const struct level_change wanted[] = { { 2, 50 }, { 0, 40 }, { 2, 30 }, { 1, 10 } };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(changes[i].level, wanted[i].level);
        assert_int_equal(changes[i].since_ms, wanted[i].since_ms);
    }
    assert_int_equal(tenure_history(t, STR_LIT("org/c"), changes), 0);
    for (int i = 0; i < 30; i++)
        add(t, i % 2 ? "L2: [org/a]" : "L1: [org/a]", 100 + i);
    assert_int_equal(tenure_history(t, STR_LIT("org/a"), changes), 20);
    assert_int_equal(changes[0].since_ms, 129);
    assert_int_equal(changes[19].since_ms, 110);
    tenure_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenure_begins_with_the_version_that_gave_the_level),
        cmocka_unit_test(leaving_the_level_or_the_list_starts_the_time_anew),
        cmocka_unit_test(the_stays_at_a_level_add_up),
        cmocka_unit_test(the_history_has_each_change_once_the_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
