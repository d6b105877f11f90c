/* The on-call comment: who is asked to look at a downstream that fails on a pull request, and the
 * word that it passes again (check-runs.md). Depends on nothing but what the view and the allowlist
 * say now, so the same is said however often it is asked. What a downstream chose is written so
 * that it can mention nobody. PURE. */
#ifndef CRCR_REPORTER_ONCALL_H
#define CRCR_REPORTER_ONCALL_H

#include "../common/model/result_record.h"

#define ONCALL_TEXT_MAX     32768 /* bytes; GitHub takes 65,536 characters */
#define ONCALL_MENTIONS_MAX 20
#define ONCALL_ROWS_MAX     50

struct oncall_job {
    const struct result_record *job;
    const char *url; /* where people look at it, or NULL */
};

/* Everything is borrowed. */
struct oncall_view {
    struct str repo;           /* downstream, as the allowlist writes it */
    struct str head_sha;       /* the newest one of the pull request */
    const struct str *oncalls; /* of the allowlist, without "@" */
    size_t n_oncalls;
    const struct oncall_job *jobs; /* those of that commit that have a check run */
    size_t n_jobs;
};

enum oncall_word {
    ONCALL_NOTHING, /* no one to ask, nothing known, or not yet: what is there stays */
    ONCALL_FAILING, /* jobs failed, were cancelled or timed out: say so, in a new comment if need be
                     */
    ONCALL_RESOLVED, /* none of them does any more: correct the comment, if there is one */
};

/* "<!-- crcr-oncall:<repo> -->", by which the comment is found again; the text begins with it. */
void oncall_marker(struct str repo, struct buf *to);
/* Of several runs of one job the newest counts, also while it is still running. Appends the text
 * unless the word is ONCALL_NOTHING; to has room for ONCALL_TEXT_MAX. */
enum oncall_word oncall_text(const struct oncall_view *view, struct buf *to);
/* Two texts differ in it, nothing more. */
void oncall_digest(struct str text, char ret[17]);

#endif
