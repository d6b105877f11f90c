/* What the dispatcher's roles share, built once by main and only read afterwards; and the roles
 * themselves, each a loop on a thread of its own. */
#ifndef CRCR_DISPATCHER_DISPATCHER_H
#define CRCR_DISPATCHER_DISPATCHER_H

#include "../common/crypto/callback_token.h"
#include "../common/daemon/daemon.h"
#include "../common/github/contents.h"
#include "../common/model/topics.h"
#include "../common/view/allowlist_feed.h"

struct redis;

struct dispatcher {
    const struct config *config;
    struct topics topics;
    struct kafka_options kafka;
    struct jwt_key *key;
    struct callback_keys *callback_keys; /* NULL: callbacks are matched by the dispatch record */
    struct content_source allowlist, providers;
    bool has_providers;
    struct allowlist_feed *feed; /* any thread */
    char *api_url;
    const char *app_id;
    int64_t app_number; /* app_id as GitHub's events name it; 0: it is a client id */
    int64_t max_age_ms; /* CRCR_MAX_EVENT_AGE */
    int64_t ttl_ms;     /* ALLOWLIST_TTL_SECONDS */
    struct http_client_options http;
    struct github_budget *budget; /* any thread */
};

/* The router: events → tasks; fetches and publishes the allowlist. */
enum err router_run(struct role_ctx *role, struct dispatcher *d, struct why *why);
/* A sender: the tasks of one tier → GitHub. */
enum err sender_run(struct role_ctx *role, struct dispatcher *d, int level, struct why *why);
/* The delay: parked tasks → back to their tier when due. */
enum err delay_run(struct role_ctx *role, struct dispatcher *d, struct why *why);

/* Clients of a role's own thread. */
enum err dispatcher_redis(const struct dispatcher *d, struct redis **ret,
                          struct why *why) MUST_CHECK;
/* budget: a Redis connection for nothing but GitHub's budget. level: of a sender, else 0; it
 * decides the class of the calls. */
enum err dispatcher_github(const struct dispatcher *d, struct http_client *client, int level,
                           struct redis *budget, struct github **ret, struct why *why) MUST_CHECK;
/* Waits until the allowlist topic has been read: nothing is skipped by a version that is not the
 * last. */
void dispatcher_wait_allowlist(struct role_ctx *role, const struct dispatcher *d);
/* By how much the clocks of two of us may differ. */
#define DISPATCHER_CLOCKS_MS 5000
/* Ready once partitions are assigned; a replica that gets none for 15 s is a spare one, and ready.
 */
struct topic_reader;
void dispatcher_ready(struct role_ctx *role, const struct topic_reader *reader, int64_t started_ms);

#endif
