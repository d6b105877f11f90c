#include "scorecard.h"

#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "yaml_doc.h"

const struct score_rule score_rules[SCORE_ITEMS] = {
    { "prerequisites.stability", 8, true },
    { "prerequisites.security", 8, true },
    { "hardware.accessibility", 4, false },
    { "hardware.stability", 6, true },
    { "software.accessibility", 4, false },
    { "software.stability", 4, true },
    { "software.maintainability", 4, true },
    { "features.data_types", 11, false },
    { "features.modes", 2, false },
    { "features.inference_training", 2, false },
    { "features.distributed", 1, false },
    { "features.cpp_extension", 1, false },
    { "features.profiling", 1, false },
    { "testing.unit_tests", 6, false },
    { "testing.benchmarks", 6, false },
    { "testing.modes", 4, false },
    { "testing.ops", 6, false },
    { "testing.distributed", 4, false },
    { "user_experience.distribution", 6, false },
    { "user_experience.setup", 2, false },
    { "user_experience.documentation", 2, false },
    { "user_experience.debugging", 2, false },
    { "user_experience.profiler", 4, false },
    { "ci_cd.accessibility", 2, true },
    { "ci_cd.ci", 4, false },
    { "ci_cd.cd", 4, false },
    { "ci_cd.tests_stability", 4, false },
    { "ci_cd.stability", 4, false },
    { "feedback.adopters", 6, false },
    { "maintenance.support", 4, false },
};

/* The document's items of User Experience add up to 16, its total is 14, and 124 is the sum of the
 * totals. */
static const struct {
    const char *prefix;
    int max;
} section_limits[] = { { "user_experience.", 14 } };

const char *grade_name(enum grade grade)
{
    static const char *const names[] = { "unknown", "Engineering", "Unstable", "Stable" };

    return names[grade];
}

int score_rule_find(struct str name)
{
    for (int i = 0; i < SCORE_ITEMS; i++)
        if (str_is(name, score_rules[i].name))
            return i;
    return -1;
}

/* ---- the file ------------------------------------------------------------------------------- */

struct reading {
    const struct yaml_doc *doc;
    struct scorecard *card;
    struct str today;
};
typedef enum err take_fn(struct reading *r, const struct yaml_doc_node *key,
                         const struct yaml_doc_node *value, struct why *why);

/* Each member of a mapping. what: what it is, for the error. */
static enum err each(struct reading *r, const struct yaml_doc_node *map, const char *what,
                     take_fn *take, struct why *why)
{
    if (!map)
        return why_set(why, ERR_REFUSE, "%s is to be a mapping; the file is empty", what);
    if (map->kind != YAML_DOC_MAP)
        return yaml_doc_fault(r->doc, map, why, "%s is to be a mapping, not %s", what,
                              yaml_doc_kind_name(map));
    for (const struct yaml_doc_node *at = map->first; at; at = at->next->next) {
        enum err err = take(r, at, at->next, why);
        if (err)
            return err;
    }
    return OK;
}

static enum err text_take(const struct reading *r, const struct yaml_doc_node *node, char *to,
                          size_t size, struct why *why)
{
    if (node->kind != YAML_DOC_TEXT || !node->text.len || node->text.len >= size)
        return yaml_doc_fault(r->doc, node, why, "a text of 1 to %zu bytes is wanted, not %s",
                              size - 1, yaml_doc_describe(node).text);
    return str_copy(to, size, node->text), OK;
}

static enum err grade_take(const struct reading *r, const struct yaml_doc_node *node,
                           enum grade *to, struct why *why)
{
    for (int i = GRADE_ENGINEERING; i <= GRADE_STABLE; i++)
        if (node->kind == YAML_DOC_TEXT &&
            str_eq_nocase(node->text, str_of(grade_name((enum grade)i)))) {
            *to = (enum grade)i;
            return OK;
        }
    return yaml_doc_fault(r->doc, node, why, "engineering, unstable or stable is wanted, not %s",
                          yaml_doc_describe(node).text);
}

static bool is_date(struct str s)
{
    if (s.len != 10)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (i == 4 || i == 7 ? s.ptr[i] != '-' : s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return true;
}

/* The members of one item; score is -1 until it is found. */
struct item_reading {
    struct reading *r;
    const struct score_rule *rule;
    struct score_item *item;
};

static enum err score_take(const struct item_reading *in, const struct yaml_doc_node *value,
                           struct why *why)
{
    uint64_t points;

    if (value->kind != YAML_DOC_TEXT || !str_to_u64(value->text, &points) ||
        points > (uint64_t)in->rule->max)
        return yaml_doc_fault(in->r->doc, value, why, "%s gives 0 to %d points, not %s",
                              in->rule->name, in->rule->max, yaml_doc_describe(value).text);
    in->item->score = (int)points;
    return OK;
}

static enum err member_take(const struct item_reading *in, const struct yaml_doc_node *key,
                            const struct yaml_doc_node *value, struct why *why)
{
    struct score_item *item = in->item;
    enum err err;

    if (str_is(key->text, "score"))
        return score_take(in, value, why);
    if (str_is(key->text, "evidence"))
        return text_take(in->r, value, item->evidence, sizeof(item->evidence), why);
    if (!str_is(key->text, "date"))
        return yaml_doc_fault(in->r->doc, key, why, "%s is none of score, evidence, date",
                              yaml_doc_describe(key).text);
    err = text_take(in->r, value, item->date, sizeof(item->date), why);
    if (!err && !is_date(str_of(item->date)))
        err = yaml_doc_fault(in->r->doc, value, why, "a date such as 2026-11-21 is wanted, not %s",
                             yaml_doc_describe(value).text);
    return err;
}

/* Without a link and a date that has come, an item is 0. */
static void item_judge(struct score_item *item, struct str today)
{
    struct str link = str_of(item->evidence);
    const char *fault = NULL;

    if (!str_starts(link, "https://") && !str_starts(link, "http://"))
        fault = "no link as evidence";
    else if (!*item->date)
        fault = "the evidence has no date";
    else if (strncmp(item->date, today.ptr, sizeof("2026-11-21") - 1) > 0)
        fault = "the evidence is of a day to come";
    if (!fault)
        return;
    if (item->score)
        snprintf(item->note, sizeof(item->note), "%d claimed: %s", item->score, fault);
    item->score = 0;
}

static enum err item_take(struct reading *r, const struct yaml_doc_node *key,
                          const struct yaml_doc_node *value, struct why *why)
{
    int i = score_rule_find(key->text);
    enum err err = OK;

    if (i < 0)
        return yaml_doc_fault(r->doc, key, why,
                              "there is no item %s; `crcrctl score --items` lists them",
                              yaml_doc_describe(key).text);
    struct item_reading in = { r, &score_rules[i], &r->card->at[i] };
    if (value->kind != YAML_DOC_MAP)
        return yaml_doc_fault(r->doc, value, why,
                              "{score: …, evidence: …, date: …} is wanted, not %s",
                              yaml_doc_describe(value).text);
    in.item->claimed = true;
    for (const struct yaml_doc_node *at = value->first; !err && at; at = at->next->next)
        err = member_take(&in, at, at->next, why);
    if (!err)
        item_judge(in.item, r->today);
    return err;
}

static enum err top_take(struct reading *r, const struct yaml_doc_node *key,
                         const struct yaml_doc_node *value, struct why *why)
{
    struct scorecard *card = r->card;
    enum err err;

    if (str_is(key->text, "platform"))
        return text_take(r, value, card->platform, sizeof(card->platform), why);
    if (str_is(key->text, "release"))
        return text_take(r, value, card->release, sizeof(card->release), why);
    if (str_is(key->text, "documented"))
        return grade_take(r, value, &card->documented, why);
    if (str_is(key->text, "previous"))
        return grade_take(r, value, &card->previous, why);
    if (str_is(key->text, "items"))
        return each(r, value, "items", item_take, why);
    if (!str_is(key->text, "repo"))
        return yaml_doc_fault(r->doc, key, why,
                              "%s is none of platform, release, repo, documented, previous, items",
                              yaml_doc_describe(key).text);
    err = text_take(r, value, card->repo, sizeof(card->repo), why);
    if (!err && !repo_valid(str_of(card->repo)))
        err = yaml_doc_fault(r->doc, value, why, "owner/repo is wanted, not %s",
                             yaml_doc_describe(value).text);
    return err;
}

enum err scorecard_parse(struct scorecard *ret, const char *file, struct str yaml, struct str today,
                         struct why *why)
{
    struct yaml_doc *doc;
    enum err err = yaml_doc_parse(&doc, file, yaml, why);

    *ret = (struct scorecard){ .documented = GRADE_ENGINEERING };
    if (err)
        return err;
    struct reading r = { doc, ret, today };
    err = each(&r, yaml_doc_root(doc), "a scorecard", top_take, why);
    if (!err && !*ret->platform)
        err = why_set(why, ERR_REFUSE, "%s: platform is missing: its name", file);
    if (!err && !*ret->release)
        err = why_set(why, ERR_REFUSE, "%s: release is missing: that of PyTorch", file);
    yaml_doc_free(doc);
    return err;
}

/* ---- what it comes to ----------------------------------------------------------------------- */

static int over_limits(const struct scorecard *card)
{
    int over = 0;

    for (size_t k = 0; k < sizeof(section_limits) / sizeof(*section_limits); k++) {
        int sum = 0;
        for (int i = 0; i < SCORE_ITEMS; i++)
            if (str_starts(str_of(score_rules[i].name), section_limits[k].prefix))
                sum += card->at[i].score;
        over += sum > section_limits[k].max ? sum - section_limits[k].max : 0;
    }
    return over;
}

/* Up as far as both releases reach, down as far as both fell. */
static enum grade next_of(enum grade documented, enum grade now, enum grade before)
{
    enum grade low = now < before ? now : before, high = now < before ? before : now;

    if (before == GRADE_UNKNOWN)
        return documented;
    return low > documented ? low : high < documented ? high : documented;
}

void scorecard_sum(const struct scorecard *card, struct score_sum *ret)
{
    *ret = (struct score_sum){ .total = -over_limits(card) };
    for (int i = 0; i < SCORE_ITEMS; i++) {
        ret->total += card->at[i].score;
        ret->p0_missing += score_rules[i].p0 && card->at[i].score < score_rules[i].max;
    }
    ret->grade = ret->total >= SCORE_STABLE && !ret->p0_missing ? GRADE_STABLE
                 : ret->total >= SCORE_UNSTABLE                 ? GRADE_UNSTABLE
                                                                : GRADE_ENGINEERING;
    ret->next = next_of(card->documented, ret->grade, card->previous);
}
