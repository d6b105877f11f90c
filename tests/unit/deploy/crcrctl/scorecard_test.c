/* The scorecard of a compute platform: what counts, and what it comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "deploy/crcrctl/scorecard.h"

#define HEAD     "platform: X\nrelease: \"2.12\"\n"
#define EVIDENCE "evidence: \"https://example.org/x\", date: 2026-11-01"

static struct scorecard card;
static struct score_sum sum;
static struct why why;

static enum err parse(const char *yaml)
{
    return scorecard_parse(&card, "p.yml", str_of(yaml), STR_LIT("2026-11-21"), &why);
}

/* All items with full points, but one that has other points. */
static void full_but(const char *head, const char *name, int points)
{
    struct buf text;

    buf_init(&text, SCORE_FILE_MAX);
    buf_printf(&text, HEAD "%sitems:\n", head);
    for (int i = 0; i < SCORE_ITEMS; i++)
        buf_printf(&text, "  %s: { score: %d, " EVIDENCE " }\n", score_rules[i].name,
                   strcmp(score_rules[i].name, name) == 0 ? points : score_rules[i].max);
    if (scorecard_parse(&card, "p.yml", buf_str(&text), STR_LIT("2026-11-21"), &why))
        fail_msg("%s", why.text);
    buf_clear(&text);
    scorecard_sum(&card, &sum);
}

static void everything_is_124_points_and_stable(void **state)
{
    (void)state;
    full_but("", "", 0);
    assert_int_equal(sum.total, SCORE_TOTAL);
    assert_int_equal(sum.grade, GRADE_STABLE);
}

static void a_p0_item_that_is_not_met_forbids_stable(void **state)
{
    (void)state;
    full_but("", "ci_cd.accessibility", 1);
    assert_int_equal(sum.total, 123);
    assert_int_equal(sum.p0_missing, 1);
    assert_int_equal(sum.grade, GRADE_UNSTABLE);
}

static void grades_begin_at_99_and_86_points(void **state)
{
    static const struct {
        int points;
        enum grade grade;
    } cases[] = { { 99, GRADE_STABLE },
                  { 98, GRADE_UNSTABLE },
                  { 86, GRADE_UNSTABLE },
                  { 85, GRADE_ENGINEERING } };
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        int over = SCORE_TOTAL - cases[k].points;
        full_but("", "", 0);
        for (int i = 0; i < SCORE_ITEMS; i++) { /* from items that are not P0 and in no limit */
            bool may = !score_rules[i].p0 && strncmp(score_rules[i].name, "user_", 5) != 0;
            int taken = may && over > 0 ? (over < card.at[i].score ? over : card.at[i].score) : 0;
            card.at[i].score -= taken;
            over -= taken;
        }
        scorecard_sum(&card, &sum);
        assert_int_equal(sum.total, cases[k].points);
        assert_int_equal(sum.grade, cases[k].grade);
    }
}

static void without_a_link_and_a_date_that_has_come_an_item_is_0(void **state)
{
    static const char *const items[] = {
        "{ score: 8 }",
        "{ score: 8, date: 2026-11-01 }",
        "{ score: 8, evidence: \"https://example.org/x\" }",
        "{ score: 8, evidence: \"trust me\", date: 2026-11-01 }",
        "{ score: 8, evidence: \"https://example.org/x\", date: 2026-11-22 }",
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
        snprintf(text, sizeof(text), HEAD "items:\n  prerequisites.stability: %s\n", items[i]);
        assert_int_equal(parse(text), OK);
        assert_int_equal(card.at[0].score, 0);
        assert_non_null(strstr(card.at[0].note, "8 claimed: "));
    }
    assert_int_equal(parse(HEAD "items: { prerequisites.stability: { score: 8, " EVIDENCE " } }"),
                     OK);
    assert_int_equal(card.at[0].score, 8);
}

static void a_fault_names_its_place_and_what_is_accepted(void **state)
{
    static const struct {
        const char *yaml, *says;
    } cases[] = {
        { "", "a scorecard is to be a mapping" },
        { "release: \"2.12\"\n", "platform is missing" },
        { HEAD "colour: red\n", "p.yml:3:1: \"colour\" is none of platform" },
        { HEAD "repo: backend\n", "p.yml:3:7: owner/repo is wanted" },
        { HEAD "previous: good\n", "p.yml:3:11: engineering, unstable or stable" },
        { HEAD "items:\n  ci_cd.cats: { score: 1 }\n",
          "p.yml:4:3: there is no item \"ci_cd.cats\"" },
        { HEAD "items:\n  ci_cd.ci: { score: 5 }\n", "p.yml:4:22: ci_cd.ci gives 0 to 4 points" },
        { HEAD "items:\n  ci_cd.ci: 4\n", "p.yml:4:13: {score: …" },
        { HEAD "items:\n  ci_cd.ci: { date: soon }\n", "a date such as 2026-11-21 is wanted" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(parse(cases[i].yaml), ERR_REFUSE);
        if (!strstr(why.text, cases[i].says))
            fail_msg("%s", why.text);
    }
}

static void the_documentation_follows_two_consecutive_releases(void **state)
{
    static const struct {
        const char *head;
        int points; /* of one P0 item: 8 is Stable, 0 is Unstable */
        enum grade next;
    } cases[] = {
        { "", 8, GRADE_ENGINEERING }, /* the release before is not known */
        { "previous: stable\n", 8, GRADE_STABLE },
        { "previous: unstable\n", 8, GRADE_UNSTABLE },
        { "previous: engineering\n", 8, GRADE_ENGINEERING },
        { "previous: unstable\ndocumented: stable\n", 0, GRADE_UNSTABLE },
        { "previous: stable\ndocumented: stable\n", 0, GRADE_STABLE },
        { "previous: engineering\ndocumented: stable\n", 0, GRADE_UNSTABLE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        full_but(cases[i].head, "prerequisites.security", cases[i].points);
        assert_int_equal(sum.next, cases[i].next);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_124_points_and_stable),
        cmocka_unit_test(a_p0_item_that_is_not_met_forbids_stable),
        cmocka_unit_test(grades_begin_at_99_and_86_points),
        cmocka_unit_test(without_a_link_and_a_date_that_has_come_an_item_is_0),
        cmocka_unit_test(a_fault_names_its_place_and_what_is_accepted),
        cmocka_unit_test(the_documentation_follows_two_consecutive_releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
