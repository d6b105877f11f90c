/* What the dispatcher's roles share, built once by main and only read afterwards; and the roles
 * themselves, each a loop on a thread of its own. */
#ifndef CRCR_DISPATCHER_DISPATCHER_H
#define CRCR_DISPATCHER_DISPATCHER_H

#include "../common/crypto/callback_token.h"
#include "../common/daemon/daemon.h"
#include "../common/github/contents.h"
#include "../common/model/task.h"
#include "../common/model/topics.h"
#include "../common/view/allowlist_feed.h"
#include "../common/worker/worker.h"

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
    struct str upstream_repo;    /* UPSTREAM_REPO */
    char *api_url;
    const char *app_id;
    int64_t app_number; /* app_id as GitHub's events name it; 0: it is a client id */
    int64_t max_age_ms; /* CRCR_MAX_EVENT_AGE */
    int64_t ttl_ms;     /* ALLOWLIST_TTL_SECONDS */
    struct http_client_options http;
    struct gate *gate; /* any thread */
};

/* The roles; opaque is the struct dispatcher. The router: events → tasks; fetches and publishes the
 * allowlist. */
enum err router_run(struct role_ctx *role, void *opaque, struct why *why);
/* A sender: the tasks of one tier → GitHub. The role is named after it. */
enum err sender_run(struct role_ctx *role, void *opaque, struct why *why);
/* The delay: parked tasks → back to their tier when due. */
enum err delay_run(struct role_ctx *role, void *opaque, struct why *why);

/* Clients of a role's own thread; github is freed first, then http, redis last. */
struct clients {
    struct redis *redis; /* counts GitHub's budget, too */
    struct http_client *http;
    struct github *github;
};
/* level: of a sender, else 0; it decides the class of the calls. max_calls: to one host at once; 0:
 * the client's own. On an error what was opened is in *ret, to be freed. */
enum err dispatcher_clients(const struct dispatcher *d, int level, int max_calls,
                            struct clients *ret, struct why *why) MUST_CHECK;
/* Waits until the allowlist topic has been read, so that no old version skips a task. */
void dispatcher_wait_allowlist(struct role_ctx *role, const struct dispatcher *d);
/* Tolerated clock skew between hosts. */
#define DISPATCHER_CLOCKS_MS 5000

/* Puts the tasks of n downstreams, up to TASK_REPOS_MAX, into the topic of their tier, as one
 * record with the key of the event. repos: task_repos, instead of the task's own repo. value is the
 * payload; it must live until stored. */
void post_tasks(struct work *work, const struct task *task, struct str repos, size_t n,
                struct str value);
/* The outcome of a task, as of now. reason may be NULL. */
void outcome_now(struct outcome *ret, const struct task *task, enum outcome_kind kind,
                 const char *reason);
/* Puts it into the topic dispatches. */
void post_outcome(struct work *work, const struct outcome *outcome);

#endif
