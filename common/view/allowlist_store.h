/* Private to allowlist_feed: the version of allowlist, providers and demotions in force, swapped
 * whole. A version lives until its last reader has released it. Any thread. */
#ifndef CRCR_VIEW_ALLOWLIST_STORE_H
#define CRCR_VIEW_ALLOWLIST_STORE_H

#include "../base/headers.h"
#include "allowlist_feed.h"

struct allowlist_store;

struct allowlist_store *allowlist_store_new(void);
/* No version may be held any more. */
void allowlist_store_free(struct allowlist_store *s);
/* Takes one record of the topic: key allowlist, providers or demotions; others are passed over.
 * ERR_REFUSE: unreadable; what was in force stays. */
enum err allowlist_store_apply(struct allowlist_store *s, struct str key, struct str value,
                               const struct headers *headers, struct why *why) MUST_CHECK;
const struct allowlist_version *allowlist_store_get(struct allowlist_store *s);
void allowlist_store_release(struct allowlist_store *s, const struct allowlist_version *v);
/* As allowlist_feed_history, of what has been applied. */
size_t allowlist_store_history(struct allowlist_store *s, struct str repo,
                               struct level_change to[TENURE_CHANGES]);

#endif
