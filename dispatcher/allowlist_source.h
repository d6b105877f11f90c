/* Fetches the allowlist and the providers file and publishes what differs from the version in force
 * (README.md, Allowlist). Every router does so: two that see the same new version at once publish
 * it twice, which changes nothing; a lease would be one more thing that can be lost.
 *
 *   fetch ─▶ read ─▶ the same as in force: nothing
 *              │  ─▶ loses more than half of the repositories: held for one TTL, then published
 *              │  ─▶ else: published to the topic, from where every daemon takes it
 *              └───▶ refused: the last good one stays in force */
#ifndef CRCR_DISPATCHER_ALLOWLIST_SOURCE_H
#define CRCR_DISPATCHER_ALLOWLIST_SOURCE_H

#include "../common/github/github.h"
#include "../common/model/event.h"
#include "dispatcher.h"

struct allowlist_source;

/* All are borrowed and outlive it, except the http_client and github, which are freed first. */
struct allowlist_source *allowlist_source_new(struct role_ctx *role, struct dispatcher *d,
                                              const struct clients *clients, struct worker *worker);
void allowlist_source_free(struct allowlist_source *s);
/* Starts the fetches that are due, once the topic has been read to its end. */
void allowlist_source_turn(struct allowlist_source *s);
/* A push: fetches at once when it is to the branch and changed a file that we read. */
void allowlist_source_pushed(struct allowlist_source *s, const struct event_facts *facts,
                             struct str body);
/* Why there is no allowlist yet, for people; borrowed until the next turn. */
const char *allowlist_source_trouble(struct allowlist_source *s);

/* PURE: what becomes of a version that could be read. in_force and held_sha may be absent. */
enum allowlist_verdict { ALLOWLIST_SAME, ALLOWLIST_PUBLISH, ALLOWLIST_HOLD };
struct allowlist_candidate {
    const struct allowlist *in_force; /* NULL: none */
    const struct allowlist *list;     /* NULL: not a list of repositories; never held */
    const char *in_force_sha, *sha;
    const char *held_sha;  /* "" when none is held */
    int64_t held_since_ms; /* on the clock of now_ms */
};
enum allowlist_verdict allowlist_classify(const struct allowlist_candidate *c, int64_t now_ms,
                                          int64_t ttl_ms);

#endif
