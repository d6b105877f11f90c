/* What the router notes about its last fetch of the allowlist, for the pages (crcr:allowlist). The
 * list itself comes from the topic. */
#ifndef CRCR_VIEW_ALLOWLIST_NOTE_H
#define CRCR_VIEW_ALLOWLIST_NOTE_H

#include "../io/redis.h"

#define ALLOWLIST_NOTE_MAX 512

/* Why the newest file is not in force; empty when it is, or when nobody has fetched one. */
enum err allowlist_note_error(struct redis *r, char error[ALLOWLIST_NOTE_MAX],
                              struct why *why) MUST_CHECK;

#endif
