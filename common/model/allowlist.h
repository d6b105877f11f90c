/* The allowlist: which downstream repositories there are, and how far each is trusted
 * (deploy/ALLOWLIST.md). A value that never changes once parsed; lookups ignore case. PURE. */
#ifndef CRCR_MODEL_ALLOWLIST_H
#define CRCR_MODEL_ALLOWLIST_H

#include "../base/err.h"
#include "../base/str.h"
#include "limits.h"

struct allowlist;

struct allowlist_entry {
    struct str repo;           /* as written */
    int level;                 /* 1…4 */
    struct str device;         /* L3; else absent */
    const struct str *oncalls; /* without "@" */
    size_t n_oncalls;
    bool pull_request; /* gets pull_request and push */
    bool nightly;      /* self-reports nightly runs */
    int64_t repo_id; /* GitHub's id of the repository, and of its owner; 0: not given. A name can */
    int64_t owner_id; /* be registered anew, an id cannot */
    int line;         /* in the file, from 1 */
};

/* file is the name used in errors: "allowlist.yml:12:5: …". The file is refused at the first
 * fault (ERR_REFUSE); all text is copied. An empty document gives an empty list. */
enum err allowlist_parse(struct allowlist **ret, const char *file, struct str yaml,
                         struct why *why) MUST_CHECK;
void allowlist_free(struct allowlist *list);
/* A list that is NULL is empty: so, too, in allowlist_find. */
size_t allowlist_size(const struct allowlist *list);
/* Entries in file order. */
const struct allowlist_entry *allowlist_at(const struct allowlist *list, size_t i);
/* NULL when the repo is not listed. */
const struct allowlist_entry *allowlist_find(const struct allowlist *list, struct str repo);
/* How many repos of the old list the new one does not have. */
size_t allowlist_lost(const struct allowlist *old, const struct allowlist *list);

#endif
