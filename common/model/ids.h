/* Identifiers: their syntax, and the keys built from them. PURE. */
#ifndef CRCR_MODEL_IDS_H
#define CRCR_MODEL_IDS_H

#include "../base/buf.h"
#include "limits.h"

/* X-GitHub-Delivery: [A-Za-z0-9-]{1,64}. */
bool delivery_valid(struct str s);
/* owner/repo: owner [A-Za-z0-9-]{1,39}, repo [A-Za-z0-9._-]{1,100}, not "." or "..", and without
 * ".git" at its end, which is of the address to clone from: GitHub has no such name. */
bool repo_valid(struct str s);
/* For people: what repo_valid takes. */
#define REPO_ACCEPTED "owner/repo, without https://github.com/ before it and .git behind it"
/* The account that a repository is of: its owner in lower case; of text without a slash all of it,
 * and "" where it is too long to be a repository of GitHub's. */
void repo_account(char to[REPO_MAX + 1], struct str repo);
/* 7 to 64 hex digits. */
bool sha_valid(struct str s);
/* 40 or 64 of them: a commit that is not abbreviated. */
bool commit_valid(struct str s);
/* "L1" to "L4" as in headers and records: 1 to 4, or 0 when it is none of them. */
int level_parse(struct str s);
/* The other way; "" for a level outside 1 to 4. */
const char *level_name(int level);
/* refs/tags/ciflow/<anything>/<pr>: true and the number, for ciflow tag pushes. */
bool ciflow_tag_pr(struct str ref, int64_t *pr);
/* ciflow/crcr/<device>: true and the device (borrowed from label). Here and where devices are
 * compared case is ignored, as GitHub does for labels. */
bool ciflow_label_device(struct str label, struct str *device);
/* The key of a result: the five parts percent-encoded (RFC 3986 unreserved characters stay) and
 * joined with a slash, so that parts may hold "/" and ":". */
void job_key(struct buf *to, struct str repo, struct str delivery, struct str workflow,
             struct str job, struct str check_run_id);
/* Appends one such part. */
void key_part(struct buf *to, struct str part);
/* Appends the name of a job's check run, crcr/<repo>/<workflow>/<job>. */
void check_run_name(struct buf *to, struct str repo, struct str workflow, struct str job);

#endif
