/* The scorecard of a compute platform (PyTorch Compute Platform Quality Levels; README.md,
 * "Scorecard"): nine sections, 124 points. What counts needs evidence: a link and a date. PURE.
 *
 *     platform: MyNPU on Linux
 *     release: "2.12"
 *     repo: org/backend            # optional: the relay measures three of the items
 *     documented: engineering      # its level in PyTorch's documentation; default engineering
 *     previous: unstable           # its grade at the release before; optional
 *     items:
 *       prerequisites.stability: { score: 8, evidence: "https://…", date: 2026-11-01 } */
#ifndef CRCR_CTL_SCORECARD_H
#define CRCR_CTL_SCORECARD_H

#include "../../common/base/err.h"
#include "../../common/base/str.h"
#include "../../common/model/limits.h"
#include "../../common/model/result_record.h"

#define SCORE_TOTAL    124
#define SCORE_STABLE   99
#define SCORE_UNSTABLE 86
#define SCORE_ITEMS    30
#define SCORE_FILE_MAX (256u << 10)
#define SCORE_TEXT_MAX 512

enum grade { GRADE_UNKNOWN, GRADE_ENGINEERING, GRADE_UNSTABLE, GRADE_STABLE };
const char *grade_name(enum grade grade); /* "Engineering", … */

struct score_rule {
    const char *name; /* "<section>.<item>", as in the file */
    int max;
    bool p0;
};
/* The items in the document's order, SCORE_ITEMS of them. */
extern const struct score_rule score_rules[SCORE_ITEMS];

struct score_item {
    int score;     /* the points that count: 0 without evidence */
    bool claimed;  /* the file has the item */
    bool measured; /* by the relay, which wins over the file */
    char evidence[SCORE_TEXT_MAX];
    char date[11];
    char note[SCORE_TEXT_MAX]; /* why it does not count, or what was measured; "": neither */
};

struct scorecard {
    char platform[SCORE_TEXT_MAX], release[64], repo[REPO_MAX + 1]; /* "" when absent */
    enum grade documented, previous;
    struct score_item at[SCORE_ITEMS]; /* as score_rules */
};

/* today: "2026-11-21"; evidence of later days does not count. file is the name used in errors,
 * "file:line:column: reason". ERR_REFUSE at the first fault. */
enum err scorecard_parse(struct scorecard *ret, const char *file, struct str yaml, struct str today,
                         struct why *why) MUST_CHECK;
/* The index in score_rules, or -1. */
int score_rule_find(struct str name);

struct score_sum {
    int total, p0_missing; /* P0 items below their full points */
    enum grade grade;
    enum grade next; /* what the documentation may say next: it takes two releases in a row */
};
/* Adds up the items; a section has its own maximum, though its items may add up to more. */
void scorecard_sum(const struct scorecard *card, struct score_sum *ret);

/* ---- the items that the relay sees by itself: public results, flaky tests, outages ----------- */

#define SCORE_FLAKY_PCT 5.0
#define SCORE_OUTAGE_MS (3 * 24 * 3600 * (int64_t)1000)

struct score_measure;

/* repo is copied. */
struct score_measure *score_measure_new(struct str repo);
void score_measure_free(struct score_measure *m);
/* Adds one row of the topic results, in any order; rows of other repositories and of unfinished
 * jobs do not count. */
void score_measure_put(struct score_measure *m, const struct result_record *row,
                       int64_t written_ms);
/* Writes the measures of all rows until now_ms into the card's items, marked measured. Without a
 * finished job the items stay as in the file, and note says so.
 *
 *   public   the results of a repository at L2 and up are on the HUD, for everybody
 *   flaky    jobs that failed in one attempt of a run and succeeded in another, of those that ended
 *   outage   the longest time with jobs that ended and none that succeeded */
void score_measure_fill(struct score_measure *m, int64_t now_ms, struct scorecard *card);

#endif
