/* What `crcrctl levels` says of each repository at L2 and above, and what follows from it. PURE. */
#ifndef CRCR_CTL_LEVELS_REPORT_H
#define CRCR_CTL_LEVELS_REPORT_H

#include "../../common/model/allowlist.h"
#include "../../common/model/demotions.h"
#include "../../common/model/level_rules.h"
#include "../../common/model/tenure.h"

/* --device org/a=npu: where a repository that is ready goes. */
struct levels_device {
    struct str repo, device;
};
/* Stands in the patch until somebody says which device it is. */
#define LEVELS_NO_DEVICE "CHOOSE-A-DEVICE"

/* All borrowed. */
struct levels_input {
    struct level_rules rules;
    int64_t now_ms;
    struct str text; /* the allowlist in force */
    const struct allowlist *list;
    const char *sha, *source, *path; /* path: of the file in its repository */
    int64_t fetched_ms;
    const struct tenure *tenure;
    struct levels *jobs;
    const struct demotions *demotions; /* in force; may be NULL */
    const struct levels_device *devices;
    size_t n_devices;
};

/* L2: ready for L3 or not. L3: good, or to be demoted. L4: its figures by the same criteria, and
 * nothing follows: its check may be required, and a required check that is never made would block
 * every pull request; who leaves L4 is decided by people. */
struct levels_row {
    const struct allowlist_entry *entry;
    int64_t since_ms;                /* at this level; -1 unknown */
    const struct demotion *demotion; /* in force, or NULL */
    struct level_verdict verdict;
    const char *state; /* ready, not_ready, good, bad, no_jobs */
};

struct levels_report {
    const struct levels_input *input; /* borrowed */
    struct levels_row *rows;          /* L2, then L3, then L4, each in file order */
    size_t n;
    struct buf patch;
    bool rewritten; /* the patch writes the file anew */
};

enum err levels_report_make(struct levels_report *ret, const struct levels_input *input,
                            struct why *why) MUST_CHECK;
void levels_report_clear(struct levels_report *r);
/* For people; with the patch at the end. */
void levels_report_text(const struct levels_report *r, struct buf *to);
/* One JSON object and a newline. */
void levels_report_json(const struct levels_report *r, struct buf *to);
/* Who is to be demoted from now on: L3 that is bad, and L3 that is demoted and has had no job since
 * by which it could have recovered. *ret is the caller's. */
struct demotions *levels_report_demotions(const struct levels_report *r);

#endif
