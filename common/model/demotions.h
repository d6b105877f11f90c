/* The L3 repositories that get no new check runs until their figures are good again
 * (deploy/crcrctl/README.md, "Levels"). The record of key `demotions` in the topic allowlist,
 * written by `crcrctl levels --apply`, read by every daemon:
 *
 *   {"schema_version":1,"at":"2026-11-21T03:20:00.000Z","demoted":[
 *     {"repo":"org/a","since":"2026-11-20T03:20:00.000Z","reason":"pass rate 85.0 %, …"}]}
 *
 * The complete list each time; an empty one means that nobody is demoted. PURE. */
#ifndef CRCR_MODEL_DEMOTIONS_H
#define CRCR_MODEL_DEMOTIONS_H

#include "../base/buf.h"
#include "event.h"

#define DEMOTIONS_KEY       "demotions"
#define DEMOTIONS_MAX_BYTES (4u << 20)

struct demotion {
    char *repo; /* as written; compared without regard to case */
    char *reason;
    int64_t since_ms; /* wall clock */
};

struct demotions {
    struct demotion *at;
    size_t n;
};

struct demotions *demotions_new(void);
void demotions_free(struct demotions *d);
/* repo and reason are copied. */
void demotions_add(struct demotions *d, struct str repo, struct str reason, int64_t since_ms);
/* 0 when d is NULL, which is an empty list. */
size_t demotions_size(const struct demotions *d);
/* NULL when the repo is not demoted, or there are no demotions (d NULL). */
const struct demotion *demotions_find(const struct demotions *d, struct str repo);

#define DEMOTION_LABEL  "crcr-auto-demotion"
#define DEMOTION_BRANCH "crcr-demotion/" /* <owner>/<repo> */
/* The repository that a pull request demotes while it is open, as at PyTorch: its branch names it,
 * and it has the label. Only a branch of the upstream's own counts: anybody may open a pull request
 * from a fork. Borrowed from facts; STR_NONE: it demotes nobody. */
struct str demotion_of_pull(const struct event_facts *facts, struct str upstream);

/* True when both name the same repositories; either may be NULL, which is an empty list. */
bool demotions_equal(const struct demotions *a, const struct demotions *b);
void demotions_to_json(const struct demotions *d, int64_t at_ms, struct buf *to);
/* ERR_REFUSE: not such a record, or of another schema_version. */
enum err demotions_from_json(struct str json, struct demotions **ret, struct why *why) MUST_CHECK;

#endif
