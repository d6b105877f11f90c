/* The allowlist in force, read from the `allowlist` topic by a thread of its own, so that all
 * replicas agree and a bad file on GitHub changes nothing. Also carries `providers` (pipelines
 * of other CIs) and `demotions` (who gets no new L3 check runs). */
#ifndef CRCR_VIEW_ALLOWLIST_FEED_H
#define CRCR_VIEW_ALLOWLIST_FEED_H

#include <stdatomic.h>

#include "../base/headers.h"
#include "../io/kafka.h"
#include "../model/allowlist.h"
#include "../model/demotions.h"
#include "../model/providers.h"
#include "../model/tenure.h"

struct allowlist_feed;

/* One version; stays valid until released, also when a newer one has come. */
struct allowlist_version {
    const struct allowlist *list;      /* NULL: none has been published yet */
    const struct providers *providers; /* NULL: none */
    const struct demotions *demotions; /* NULL: none */
    char sha[65];                      /* sha, source and fetched_ms are the allowlist's */
    char source[512];
    int64_t fetched_ms;
    char providers_sha[65]; /* "" while there are no providers */
    int64_t providers_fetched_ms;
};

/* Called when a record of the topic could not be read (what was in force stays: another version of
 * the relay published what this one does not understand), or when the topic cannot be opened (once
 * for each new reason). On the feed's thread; for the program to log. */
typedef void allowlist_refused_fn(const struct why *why);

/* Starts the thread. Fails only when there is no thread to be had: brokers or a topic that are not
 * there yet are waited for, and caught_up stays false. The strings of kafka and topic are kept:
 * they must outlive the feed. The thread's sign of life, of daemon_watch: *alive_ms is the
 * monotonic clock of the last turn of its loop, at least every few seconds, also while there is no
 * Kafka. kafka NULL, for tests: no thread, what allowlist_feed_apply takes is all there is. */
enum err allowlist_feed_new(struct allowlist_feed **ret, const struct kafka_options *kafka,
                            const char *topic, allowlist_refused_fn *refused,
                            atomic_llong *alive_ms, struct why *why) MUST_CHECK;
void allowlist_feed_free(struct allowlist_feed *f);
/* The thread's own, and tests': takes one record of the topic, with the key allowlist, providers or
 * demotions; others are passed over. ERR_REFUSE: unreadable; what was in force stays. */
enum err allowlist_feed_apply(struct allowlist_feed *f, struct str key, struct str value,
                              const struct headers *headers, struct why *why) MUST_CHECK;
/* The version in force; release it soon. Any thread. Never NULL. While the topic is still being
 * read from its beginning there is none: an old version must not decide about a repository that a
 * later one added. */
const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f);
void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v);
/* The demotion of a repository at L3, or NULL: it gets no new check runs, those that were started
 * are ended. At other levels there is none, whatever the record says. Borrowed from the version. */
const struct demotion *allowlist_version_demotion(const struct allowlist_version *v,
                                                  struct str repo);
/* Which level the repo has had since when, newest first, by all versions in the topic. Gives how
 * many changes there are in to; none while the topic is still being read. Any thread. */
size_t allowlist_feed_history(struct allowlist_feed *f, struct str repo,
                              struct level_change to[TENURE_CHANGES]);
/* tenure_total_ms of the same; -1 also while the topic is still being read. Any thread. */
int64_t allowlist_feed_tenure_ms(struct allowlist_feed *f, struct str repo, int level,
                                 int64_t now_ms);
/* True once the topic has been read to its end: only then does "no list" mean that there is none.
 */
bool allowlist_feed_caught_up(struct allowlist_feed *f);

#endif
