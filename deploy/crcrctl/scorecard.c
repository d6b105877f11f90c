#include "scorecard.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/base/table.h"
#include "../../common/model/ids.h"
#include "../../common/model/yaml_doc.h"
#include "out.h"

#define DAY_MS 86400000.0

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
#define LIMITED_SECTION "user_experience."
#define LIMITED_TO      14

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

struct card_parse {
    const struct yaml_doc *doc;
    struct scorecard *card;
    struct str today;
};
#define FAULT(r, node, ...) yaml_doc_fault((r)->doc, node, why, __VA_ARGS__)

static bool is_date(struct str s)
{
    if (s.len != 10)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (i == 4 || i == 7 ? s.ptr[i] != '-' : s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return true;
}

static enum err text_take(const struct card_parse *r, const struct yaml_doc_node *node, char *to,
                          size_t size, struct why *why)
{
    if (node->kind != YAML_DOC_TEXT || !node->text.len || node->text.len >= size)
        return FAULT(r, node, "a text of 1 to %zu bytes is wanted, not %s", size - 1,
                     yaml_doc_describe(node).text);
    return str_copy(to, size, node->text), OK;
}

static enum err grade_take(const struct card_parse *r, const struct yaml_doc_node *node,
                           enum grade *to, struct why *why)
{
    for (int i = GRADE_ENGINEERING; i <= GRADE_STABLE; i++)
        if (node->kind == YAML_DOC_TEXT &&
            str_eq_nocase(node->text, str_of(grade_name((enum grade)i)))) {
            *to = (enum grade)i;
            return OK;
        }
    return FAULT(r, node, "engineering, unstable or stable is wanted, not %s",
                 yaml_doc_describe(node).text);
}

/* "key: {score: …, evidence: …, date: …}". Without a link and a date that has come it is 0. */
static enum err item_take(const struct card_parse *r, const struct yaml_doc_node *key,
                          struct why *why)
{
    const struct yaml_doc_node *value = key->next;
    int rule = score_rule_find(key->text);
    const char *fault = NULL;
    enum err err = OK;
    if (rule < 0)
        return FAULT(r, key, "there is no item %s; `crcrctl score --items` lists them",
                     yaml_doc_describe(key).text);
    if (value->kind != YAML_DOC_MAP)
        return FAULT(r, value, "{score: …, evidence: …, date: …} is wanted, not %s",
                     yaml_doc_describe(value).text);
    struct score_item *item = &r->card->at[rule];
    item->claimed = true;
    for (const struct yaml_doc_node *at = value->first; !err && at; at = at->next->next) {
        const struct yaml_doc_node *to = at->next;
        int max = score_rules[rule].max;
        uint64_t points;
        if (str_is(at->text, "score")) {
            if (to->kind != YAML_DOC_TEXT || !str_to_u64(to->text, &points) ||
                points > (uint64_t)max)
                return FAULT(r, to, "%s gives 0 to %d points, not %s", score_rules[rule].name, max,
                             yaml_doc_describe(to).text);
            item->score = (int)points;
        } else if (str_is(at->text, "evidence")) {
            err = text_take(r, to, item->evidence, sizeof(item->evidence), why);
        } else if (str_is(at->text, "date")) {
            err = text_take(r, to, item->date, sizeof(item->date), why);
            if (!err && !is_date(str_of(item->date)))
                err = FAULT(r, to, "a date such as 2026-11-21 is wanted, not %s",
                            yaml_doc_describe(to).text);
        } else {
            err = FAULT(r, at, "%s is none of score, evidence, date", yaml_doc_describe(at).text);
        }
    }
    if (!str_starts(str_of(item->evidence), "https://") &&
        !str_starts(str_of(item->evidence), "http://"))
        fault = "no link as evidence";
    else if (!*item->date)
        fault = "the evidence has no date";
    else if (strncmp(item->date, r->today.ptr, sizeof("2026-11-21") - 1) > 0)
        fault = "the evidence is of a day to come";
    if (fault && item->score)
        FORMAT(item->note, "%d claimed: %s", item->score, fault);
    if (fault)
        item->score = 0;
    return err;
}

static enum err top_take(const struct card_parse *r, const struct yaml_doc_node *key,
                         struct why *why)
{
    struct scorecard *card = r->card;
    const struct yaml_doc_node *value = key->next;
    enum err err = OK;
    if (str_is(key->text, "platform"))
        return text_take(r, value, card->platform, sizeof(card->platform), why);
    if (str_is(key->text, "release"))
        return text_take(r, value, card->release, sizeof(card->release), why);
    if (str_is(key->text, "documented"))
        return grade_take(r, value, &card->documented, why);
    if (str_is(key->text, "previous"))
        return grade_take(r, value, &card->previous, why);
    if (str_is(key->text, "repo")) {
        err = text_take(r, value, card->repo, sizeof(card->repo), why);
        if (!err && !repo_valid(str_of(card->repo)))
            err = FAULT(r, value, "owner/repo is wanted, not %s", yaml_doc_describe(value).text);
        return err;
    }
    if (!str_is(key->text, "items"))
        return FAULT(r, key, "%s is none of platform, release, repo, documented, previous, items",
                     yaml_doc_describe(key).text);
    if (value->kind != YAML_DOC_MAP)
        return FAULT(r, value, "items is to be a mapping, not %s", yaml_doc_kind_name(value));
    for (const struct yaml_doc_node *at = value->first; !err && at; at = at->next->next)
        err = item_take(r, at, why);
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
    const struct card_parse r = { doc, ret, today };
    const struct yaml_doc_node *root = yaml_doc_root(doc);
    if (!root)
        err = why_set(why, ERR_REFUSE, "a scorecard is to be a mapping; the file is empty");
    else if (root->kind != YAML_DOC_MAP)
        err = FAULT(&r, root, "a scorecard is to be a mapping, not %s", yaml_doc_kind_name(root));
    for (const struct yaml_doc_node *at = root ? root->first : NULL; !err && at;
         at = at->next->next)
        err = top_take(&r, at, why);
    if (!err && !*ret->platform)
        err = why_set(why, ERR_REFUSE, "%s: platform is missing: its name", file);
    if (!err && !*ret->release)
        err = why_set(why, ERR_REFUSE, "%s: release is missing: that of PyTorch", file);
    yaml_doc_free(doc);
    return err;
}

/* ---- what it comes to ----------------------------------------------------------------------- */

void scorecard_sum(const struct scorecard *card, struct score_sum *ret)
{
    int limited = 0;
    *ret = (struct score_sum){ .total = 0 };
    for (int i = 0; i < SCORE_ITEMS; i++) {
        if (str_starts(str_of(score_rules[i].name), LIMITED_SECTION))
            limited += card->at[i].score;
        ret->total += card->at[i].score;
        ret->p0_missing += score_rules[i].p0 && card->at[i].score < score_rules[i].max;
    }
    ret->total -= limited > LIMITED_TO ? limited - LIMITED_TO : 0;
    ret->grade = ret->total >= SCORE_STABLE && !ret->p0_missing ? GRADE_STABLE
                 : ret->total >= SCORE_UNSTABLE                 ? GRADE_UNSTABLE
                                                                : GRADE_ENGINEERING;
    /* Up as far as both releases reach, down as far as both fell. */
    enum grade now = ret->grade, before = card->previous;
    enum grade low = now < before ? now : before, high = now < before ? before : now;
    ret->next = before == GRADE_UNKNOWN   ? card->documented
                : low > card->documented  ? low
                : high < card->documented ? high
                                          : card->documented;
}

/* ---- what the relay measures ---------------------------------------------------------------- */

/* A job of a run, over its attempts; by run, workflow and job. */
struct job {
    bool failed, succeeded;
};
struct end {
    int64_t at_ms;
    bool success;
};
struct score_measure {
    char repo[REPO_MAX + 1];
    struct table jobs;
    struct end *ends;
    size_t n, cap;
};

struct score_measure *score_measure_new(struct str repo)
{
    struct score_measure *m = mem_alloc(1, sizeof(*m));
    m->jobs.size = sizeof(struct job);
    str_copy(m->repo, sizeof(m->repo), repo);
    return m;
}

void score_measure_free(struct score_measure *m)
{
    if (!m)
        return;
    table_clear(&m->jobs);
    free(m->ends);
    free(m);
}

void score_measure_put(struct score_measure *m, const struct result_record *row, int64_t written_ms)
{
    bool success = str_is(str_of(row->conclusion ? row->conclusion : ""), "success");
    bool ended = row->state == JOB_COMPLETED || row->state == JOB_TIMED_OUT;
    char key[1024];
    if (!ended || row->level < 2 || !str_eq_nocase(str_of(row->repo), str_of(m->repo)))
        return;
    FORMAT(key, "%s\n%s\n%s", row->run_id ? row->run_id : "",
           row->workflow_name ? row->workflow_name : "", row->job_name ? row->job_name : "");
    struct job *job = table_make(&m->jobs, str_of(key));
    job->succeeded |= success;
    job->failed |= !success;
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->ends = mem_resize(m->ends, m->cap, sizeof(*m->ends));
    }
    m->ends[m->n++] = (struct end){ written_ms, success };
}

static int by_time(const void *left, const void *right)
{
    const struct end *a = left, *b = right;
    return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* From the first job that ended badly to the next success, or to now. */
static int64_t longest_outage(struct score_measure *m, int64_t now_ms)
{
    int64_t longest = 0, began_ms = -1;
    qsort(m->ends, m->n, sizeof(*m->ends), by_time);
    for (size_t i = 0; i <= m->n; i++) {
        bool last = i == m->n;
        int64_t at_ms = last ? now_ms : m->ends[i].at_ms;
        if (!last && !m->ends[i].success) {
            began_ms = began_ms < 0 ? at_ms : began_ms;
            continue;
        }
        if (began_ms >= 0 && at_ms - began_ms > longest)
            longest = at_ms - began_ms;
        began_ms = -1;
    }
    return longest;
}

/* The item with full points or none; its note is written by the caller. */
static struct score_item *fill(struct scorecard *card, const char *name, bool good, int64_t now_ms)
{
    int i = score_rule_find(str_of(name));
    struct score_item *item = &card->at[i];
    char at[CLOCK_TEXT_SIZE];
    clock_format(now_ms, at);
    *item = (struct score_item){ .score = good ? score_rules[i].max : 0,
                                 .claimed = item->claimed,
                                 .measured = true,
                                 .evidence = "the relay's own results" };
    FORMAT(item->date, "%.10s", at);
    return item;
}

void score_measure_fill(struct score_measure *m, int64_t now_ms, struct scorecard *card)
{
    static const char *const names[] = { "ci_cd.accessibility", "ci_cd.tests_stability",
                                         "ci_cd.stability" };
    struct score_item *item;
    for (size_t i = 0; m->n == 0 && i < sizeof(names) / sizeof(*names); i++) {
        item = &card->at[score_rule_find(str_of(names[i]))];
        FORMAT(item->note, "not measured: no job of %s ended", m->repo);
    }
    if (m->n == 0)
        return;
    size_t n_flaky = 0;
    for (const struct job *one = NULL; (one = table_next(&m->jobs, one));)
        n_flaky += one->failed && one->succeeded;
    double flaky = 100.0 * (double)n_flaky / (double)table_count(&m->jobs);
    int64_t outage_ms = longest_outage(m, now_ms);
    item = fill(card, names[0], true, now_ms);
    FORMAT(item->note, "%zu jobs ended, all on the HUD", m->n);
    item = fill(card, names[1], flaky < SCORE_FLAKY_PCT, now_ms);
    FORMAT(item->note, "%.1f %% of %zu jobs failed and succeeded in one run", flaky,
           table_count(&m->jobs));
    item = fill(card, names[2], outage_ms <= SCORE_OUTAGE_MS, now_ms);
    FORMAT(item->note, "longest time without a success %.1f d", (double)outage_ms / DAY_MS);
}
