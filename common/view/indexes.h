/* What the pages start from: which deliveries, which downstreams, and whether the newest allowlist
 * is in force. */
#ifndef CRCR_VIEW_INDEXES_H
#define CRCR_VIEW_INDEXES_H

#include "entries.h"

struct view_index_entry {
    char *name;
    int64_t at_ms;
};
/* Names of the view, with the time that each stands under. */
struct view_index {
    struct view_index_entry *at;
    size_t n;
};
/* Frees the entries; an empty index is fine. */
void view_index_clear(struct view_index *index);
/* Appends a copy of the name. */
void view_index_add(struct view_index *index, struct str name, int64_t at_ms);

/* Runs a command that gives members with their scores. *ret is the caller's. */
enum err index_read(struct redis *r, size_t argc, const struct str *argv, struct view_index *ret,
                    struct why *why) MUST_CHECK;
/* The newest members of a zset, newest first, at most limit. *ret is the caller's. */
enum err index_newest(struct redis *r, struct str key, size_t limit, struct view_index *ret,
                      struct why *why) MUST_CHECK;

/* Deliveries of a pull request, newest first, at most limit. *ret is the caller's. */
enum err deliveries_of_pr(struct redis *r, int64_t pr, size_t limit, struct view_index *ret,
                          struct why *why) MUST_CHECK;
/* Deliveries whose id begins so, of those that came in the ttl_s before now_ms and have a dispatch:
 * at most limit, the newest days first, at_ms: the day. */
enum err deliveries_by_prefix(struct redis *r, struct str prefix, int64_t now_ms, int64_t ttl_s,
                              size_t limit, struct view_index *ret, struct why *why) MUST_CHECK;
/* Downstreams by their last activity, newest first, at most limit. */
enum err repos_by_activity(struct redis *r, size_t limit, struct view_index *ret,
                           struct why *why) MUST_CHECK;

/* What the router notes about its last fetch of the allowlist (crcr:allowlist); the list itself
 * comes from the topic. Why the newest file is not in force; empty when it is, or when nobody has
 * fetched one. */
#define ALLOWLIST_NOTE_MAX 512
enum err allowlist_note_error(struct redis *r, char error[ALLOWLIST_NOTE_MAX],
                              struct why *why) MUST_CHECK;
/* When it was last fetched complete, changed or not, wall clock; 0: not known. */
enum err allowlist_note_fetched(struct redis *r, int64_t *ret, struct why *why) MUST_CHECK;

#endif
