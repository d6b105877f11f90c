#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/buf.h"
#include "common/model/allowlist.h"

static struct allowlist *parse(const char *yaml)
{
    struct allowlist *list = NULL;
    struct why why = { "" };
    if (allowlist_parse(&list, "a.yml", str_of(yaml), &why))
        fail_msg("refused: %s", why.text);
    return list;
}

static const struct allowlist_entry *entry(const struct allowlist *list, const char *repo)
{
    const struct allowlist_entry *e = allowlist_find(list, str_of(repo));
    if (!e)
        fail_msg("%s was not found", repo);
    return e;
}

static void assert_refused(const char *yaml, const char *begins, const char *holds)
{
    struct allowlist *list = NULL;
    struct why why = { "" };
    if (allowlist_parse(&list, "a.yml", str_of(yaml), &why) != ERR_REFUSE)
        fail_msg("was taken: %s", yaml);
    assert_null(list);
    if (!str_starts(str_of(why.text), begins) || !strstr(why.text, holds))
        fail_msg("for:\n%s\nthe reason is \"%s\", wanted \"%s … %s\"", yaml, why.text, begins,
                 holds);
}

static void ids_are_read(void **state)
{
    (void)state;
    struct allowlist *list = parse("L2: [org/a: {repo_id: 71, owner_id: \"7\"}, org/b]\n"
                                   "L3: { npu: { org/c: {repo_id: 9, oncalls: [x]} } }\n");
    assert_int_equal(entry(list, "org/a")->repo_id, 71);
    assert_int_equal(entry(list, "org/a")->owner_id, 7);
    assert_int_equal(entry(list, "org/b")->repo_id, 0);
    assert_int_equal(entry(list, "org/c")->repo_id, 9);
    assert_int_equal(entry(list, "org/c")->n_oncalls, 1);
    allowlist_free(list);
}

/* ---- forms ---------------------------------------------------------------------------------- */

static void the_documented_example_is_read(void **state)
{
    (void)state;
    struct allowlist *list = parse("L1: [org/a, org/b]\n"
                                   "L2:\n"
                                   "  - org/c\n"
                                   "  - org/d: {events: [nightly]}\n"
                                   "L3:\n"
                                   "  device1: { org/e: [oncall1, oncall2] }\n"
                                   "L4:\n"
                                   "  - org/f: oncall1, oncall2\n");
    assert_int_equal(allowlist_size(list), 6);
    assert_true(str_is(allowlist_at(list, 0)->repo, "org/a"));
    assert_true(str_is(allowlist_at(list, 5)->repo, "org/f"));

    const struct allowlist_entry *a = entry(list, "org/a"), *d = entry(list, "org/d"),
                                 *e = entry(list, "org/e"), *f = entry(list, "org/f");
    assert_int_equal(a->level, 1);
    assert_int_equal(a->line, 1);
    assert_true(a->pull_request && a->nightly);
    assert_null(a->device.ptr);
    assert_int_equal(a->n_oncalls, 0);
    assert_int_equal(d->level, 2);
    assert_true(!d->pull_request && d->nightly);
    assert_int_equal(e->level, 3);
    assert_true(str_is(e->device, "device1"));
    assert_int_equal(e->n_oncalls, 2);
    assert_true(str_is(e->oncalls[1], "oncall2"));
    assert_int_equal(e->line, 6);
    assert_int_equal(f->level, 4);
    assert_int_equal(f->n_oncalls, 2);
    assert_true(str_is(f->oncalls[0], "oncall1"));
    assert_true(str_is(f->oncalls[1], "oncall2"));
    assert_null(f->device.ptr);
    allowlist_free(list);
}

static void events_may_be_named_at_every_tier(void **state)
{
    (void)state;
    struct allowlist *list = parse("L1:\n- org/a: {events: [pull_request]}\n"
                                   "L2:\n- org/b: {events: [pull_request, nightly]}\n"
                                   "L3:\n  d:\n    org/c:\n      events: nightly\n"
                                   "      oncalls: \"@x\"\n"
                                   "L4:\n- org/d:\n    oncalls: [x, y]\n");
    assert_true(entry(list, "org/a")->pull_request && !entry(list, "org/a")->nightly);
    assert_true(entry(list, "org/b")->pull_request && entry(list, "org/b")->nightly);
    assert_true(!entry(list, "org/c")->pull_request && entry(list, "org/c")->nightly);
    assert_true(str_is(entry(list, "org/c")->oncalls[0], "x"));
    assert_true(entry(list, "org/d")->pull_request && entry(list, "org/d")->nightly);
    assert_int_equal(entry(list, "org/d")->n_oncalls, 2);
    allowlist_free(list);
}

static void on_calls_come_as_text_list_or_not_at_all(void **state)
{
    (void)state;
    struct allowlist *list = parse("L4:\n"
                                   "- org/text: a , b,,c\n"
                                   "- org/list: [a, b]\n"
                                   "- org/none\n"
                                   "- org/null:\n"
                                   "- org/empty: []\n"
                                   "- org/at: \"@a, @org/team\"\n"
                                   "- org/atlist: ['@a', b]\n");
    assert_int_equal(entry(list, "org/text")->n_oncalls, 3);
    assert_true(str_is(entry(list, "org/text")->oncalls[2], "c"));
    assert_int_equal(entry(list, "org/list")->n_oncalls, 2);
    assert_int_equal(entry(list, "org/none")->n_oncalls, 0);
    assert_int_equal(entry(list, "org/null")->n_oncalls, 0);
    assert_int_equal(entry(list, "org/empty")->n_oncalls, 0);
    assert_true(str_is(entry(list, "org/at")->oncalls[0], "a"));
    assert_true(str_is(entry(list, "org/at")->oncalls[1], "org/team"));
    assert_true(str_is(entry(list, "org/atlist")->oncalls[0], "a"));
    allowlist_free(list);
}

static void lookups_ignore_case_and_keep_the_spelling(void **state)
{
    (void)state;
    struct allowlist *list = parse("L1: [Org/Back-End.x]");
    assert_true(str_is(entry(list, "oRG/bACK-eND.X")->repo, "Org/Back-End.x"));
    assert_null(allowlist_find(list, STR_LIT("org/back-end")));
    assert_null(allowlist_find(list, STR_LIT("org/back-end.x\0y")));
    assert_null(allowlist_find(list, STR_NONE));
    char huge[1000];
    memset(huge, 'a', sizeof(huge));
    assert_null(allowlist_find(list, (struct str){ huge, sizeof(huge) }));
    allowlist_free(list);
}

static void nothing_is_a_valid_list(void **state)
{
    (void)state;
    static const char *const empty[] = { "",      "# only a comment\n", "---\n", "~\n", "{}\n",
                                         "L1:\n", "L3: ~\nL4: []",      "L3: {}" };
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct allowlist *list = parse(empty[i]);
        assert_int_equal(allowlist_size(list), 0);
        assert_null(allowlist_find(list, STR_LIT("org/a")));
        allowlist_free(list);
    }
}

static void the_text_of_the_file_is_copied(void **state)
{
    (void)state;
    char *yaml = strdup("L1: [org/a]");
    struct allowlist *list = parse(yaml);
    memset(yaml, 'x', strlen(yaml));
    free(yaml);
    assert_true(str_is(allowlist_at(list, 0)->repo, "org/a"));
    allowlist_free(list);
}

static void lost_counts_what_the_new_list_lacks(void **state)
{
    (void)state;
    struct allowlist *old = parse("L1: [org/a, org/b, org/c]");
    struct allowlist *new = parse("L1: [org/d]\nL2: [ORG/B]\n");
    assert_int_equal(allowlist_lost(old, new), 2);
    assert_int_equal(allowlist_lost(new, old), 1);
    allowlist_free(old);
    allowlist_free(new);
}

static void ten_thousand_repositories_are_taken_and_no_more(void **state)
{
    (void)state;
    struct buf yaml;
    struct allowlist *list;
    buf_init(&yaml, 1u << 20);
    buf_puts(&yaml, "L1:\n");
    for (int i = 0; i < ALLOWLIST_MAX_REPOS; i++)
        buf_printf(&yaml, "- org/r%d\n", i);
    list = parse(yaml.ptr);
    assert_int_equal(allowlist_size(list), ALLOWLIST_MAX_REPOS);
    assert_non_null(allowlist_find(list, STR_LIT("ORG/R9999")));
    allowlist_free(list);
    buf_puts(&yaml, "- org/one-more\n");
    assert_refused(yaml.ptr, "a.yml:10002:3: ", "10000");
    buf_clear(&yaml);
}

/* ---- faults --------------------------------------------------------------------------------- */

static void a_fault_names_its_place_and_what_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *begins, *holds;
    } faults[] = {
        /* a repository twice, in any case, anywhere */
        { "L1: [org/a]\nL2:\n  - Org/A\n", "a.yml:3:5: ", "the first is at line 1" },
        { "L3:\n  x: {org/a: }\n  y: {ORG/a: [b]}\n", "a.yml:3:7: ", "the first is at line 2" },
        { "L3:\n  x:\n    org/a: b\n    org/a: c\n", "a.yml:4:5: ", "the first is at line 3" },
        /* not owner/repo */
        { "L1:\n  - noslash\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L1:\n  - a/b/c\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L1:\n  - org/a.git\n", "a.yml:2:5: ", ".git behind it" },
        { "L2:\n  - org/A.GIT: {events: [nightly]}\n", "a.yml:2:5: ", ".git behind it" },
        { "L1:\n  - https://github.com/org/a\n", "a.yml:2:5: ", "without https://github.com/" },
        { "L1:\n  - git@github.com:org/a.git\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L1:\n  - \"a/b\\0\"\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L1:\n  - [org/a]\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L1:\n  -\n", "a.yml:2:4: ", "accepted is owner/repo" },
        { "L4:\n  - x: oncall\n", "a.yml:2:5: ", "accepted is owner/repo" },
        { "L3:\n  d: {e: [x]}\n", "a.yml:2:7: ", "accepted is owner/repo" },
        /* devices */
        { "L3:\n  '': {org/a: [b]}\n", "a.yml:2:3: ", "device without a name" },
        { "L3:\n  d: {}\n", "a.yml:2:3: ", "no repository" },
        { "L3:\n  d:\n", "a.yml:2:3: ", "accepted is a mapping" },
        { "L3:\n  d: [org/a]\n", "a.yml:2:6: ", "accepted is a mapping" },
        { "L3:\n  d: {org/a: x}\n  D: {org/b: x}\n", "a.yml:3:3: ", "the first is at line 2" },
        { "L3:\n  'a,b': {org/a: x}\n", "a.yml:2:3: ", "label" },
        { "L3:\n  - org/a\n", "a.yml:2:3: ", "L3 is a list; accepted is a mapping" },
        { "L3: org/a\n", "a.yml:1:5: ", "L3 is a text" },
        /* tiers */
        { "L1: org/a\n", "a.yml:1:5: ", "L1 is a text; accepted is a list" },
        { "L4: {org/a: x}\n", "a.yml:1:5: ", "L4 is a mapping; accepted is a list" },
        { "L1: []\nL5: []\n", "a.yml:2:1: ", "accepted are L1, L2, L3, L4" },
        { "l1: []\n", "a.yml:1:1: ", "unknown key \"l1\"" },
        { "- org/a\n", "a.yml:1:1: ", "accepted are the keys L1" },
        { "hello\n", "a.yml:1:1: ", "accepted are the keys L1" },
        { "L1: []\nL1: []\n", "a.yml:2:1: ", "is twice" },
        /* entries */
        { "L1:\n- org/a: {evnets: [nightly]}\n",
          "a.yml:2:11: ", "accepted are events, oncalls, repo_id and owner_id" },
        { "L2:\n- org/a: {repo_id: x}\n",
          "a.yml:2:20: ", "repo_id is \"x\"; accepted is GitHub's number" },
        { "L2:\n- org/a: {owner_id: 0}\n", "a.yml:2:21: ", "owner_id is \"0\"; accepted" },
        { "L2:\n- org/a: {repo_id: [7]}\n", "a.yml:2:20: ", "repo_id is a list; accepted" },
        { "L1:\n- org/a: {events: [weekly]}\n", "a.yml:2:20: ", "accepted are pull_request" },
        { "L1:\n- org/a: {events: []}\n", "a.yml:2:19: ", "accepted are pull_request" },
        { "L1:\n- org/a: {events: }\n", "a.yml:2:19: ", "accepted are pull_request" },
        { "L1:\n- org/a: {events: [[nightly]]}\n", "a.yml:2:20: ", "accepted are pull_request" },
        { "L4:\n- {org/a: x, org/b: y}\n", "a.yml:2:3: ", "one repository an entry" },
        { "L4:\n- {}\n", "a.yml:2:3: ", "one repository an entry" },
        { "L4:\n- org/a: [[x]]\n", "a.yml:2:11: ", "accepted are names" },
        { "L4:\n- org/a: {oncalls: {x: y}}\n", "a.yml:2:20: ", "list of names" },
        { "L4:\n- org/a: \"x\\ny\"\n", "a.yml:2:10: ", "control character" },
        /* what YAML itself refuses, and what we do not take of YAML */
        { "L4:\n- org/a: [@name]\n", "a.yml:2:11: ", "must stand in quotes" },
        { "L4:\n  - org/\xc3\xa9: @name\n", "a.yml:2:12: ", "must stand in quotes" },
        { "L1:\n\t- org/a\n", "a.yml:2:1: ", "not with tabs" },
        { "L1: [org/a\nL2: []\n", "a.yml:2:", "not YAML" },
        { "L1: [org/\xff]\n", "a.yml:1:10: ", "UTF-8" },
        { "L1: &x [org/a]\n", "a.yml:1:5: ", "anchors" },
        { "L1: *x\n", "a.yml:1:5: ", "aliases" },
        { "L1: !!str x\n", "a.yml:1:5: ", "tags" },
        { "L1: []\n---\nL2: []\n", "a.yml:2:1: ", "second document" },
        { "? [a]\n: b\n", "a.yml:1:3: ", "key must be a text" },
        { "[[[[[[[[[[[[[[[[[[[[[[[[[[", "a.yml:1:17: ", "nested deeper than 16" },
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        assert_refused(faults[i].yaml, faults[i].begins, faults[i].holds);
}

static void a_device_too_long_for_a_label_is_refused(void **state)
{
    (void)state;
    struct allowlist *list = parse("L3: {a2345678901234567890123456789012345678: {org/a: }}");
    allowlist_free(list);
    assert_refused("L3: {a23456789012345678901234567890123456789: {org/a: }}",
                   "a.yml:1:6: ", "38 bytes");
}

static void an_alias_bomb_costs_nothing(void **state)
{
    (void)state;
    assert_refused("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n",
                   "a.yml:1:4: ", "anchors");
}

static void a_reason_is_one_line_of_bounded_length(void **state)
{
    (void)state;
    struct why why;
    struct allowlist *list;
    char yaml[2000] = "L1:\n- \"";
    memset(yaml + strlen(yaml), 'x', 900);
    strcat(yaml, "\\n\\e\"\n");
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), &why), ERR_REFUSE);
    assert_null(strchr(why.text, '\n'));
    assert_true(strlen(why.text) < 250);
    assert_refused("L1:\n- \"a\\nb\"\n", "a.yml:2:3: \"a?b\"", "owner/repo");
}

static void too_many_bytes_or_values_are_refused(void **state)
{
    (void)state;
    struct why why;
    struct allowlist *list;
    char *big = malloc(ALLOWLIST_MAX_BYTES + 1);
    assert_non_null(big);
    memset(big, '\n', ALLOWLIST_MAX_BYTES + 1);
    assert_int_equal(allowlist_parse(&list, "a", (struct str){ big, ALLOWLIST_MAX_BYTES }, &why),
                     OK);
    allowlist_free(list);
    assert_int_equal(
        allowlist_parse(&list, "a", (struct str){ big, ALLOWLIST_MAX_BYTES + 1 }, &why),
        ERR_REFUSE);
    memcpy(big, "L1: [", 5);
    for (size_t i = 5; i < ALLOWLIST_MAX_BYTES; i++)
        big[i] = i % 2 ? 'a' : ',';
    assert_int_equal(allowlist_parse(&list, "a", (struct str){ big, ALLOWLIST_MAX_BYTES }, &why),
                     ERR_REFUSE);
    assert_non_null(strstr(why.text, "values"));
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_example_is_read),
        cmocka_unit_test(ids_are_read),
        cmocka_unit_test(events_may_be_named_at_every_tier),
        cmocka_unit_test(on_calls_come_as_text_list_or_not_at_all),
        cmocka_unit_test(lookups_ignore_case_and_keep_the_spelling),
        cmocka_unit_test(nothing_is_a_valid_list),
        cmocka_unit_test(the_text_of_the_file_is_copied),
        cmocka_unit_test(lost_counts_what_the_new_list_lacks),
        cmocka_unit_test(ten_thousand_repositories_are_taken_and_no_more),
        cmocka_unit_test(a_fault_names_its_place_and_what_is_accepted),
        cmocka_unit_test(a_device_too_long_for_a_label_is_refused),
        cmocka_unit_test(an_alias_bomb_costs_nothing),
        cmocka_unit_test(a_reason_is_one_line_of_bounded_length),
        cmocka_unit_test(too_many_bytes_or_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
