#include "allowlist_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/crypto/hmac.h"
#include "../common/io/redis.h"
#include "../common/view/keys.h"
#include "../common/worker/worker.h"
#include "metrics.h"

#define AGAIN_MS       60000 /* after a fetch that failed */
#define AGAIN_FIRST_MS 2000  /* the same while there is no list at all */

/* One of the two files. */
struct watched {
    struct allowlist_source *source;
    const char *name; /* the record's key: "allowlist", "providers" */
    const struct content_source *from;
    bool is_list;
    bool fetching;
    bool again;                /* asked for while fetching */
    int64_t due_ms;            /* monotonic */
    char *etag;                /* of the answer that came last */
    char sha[SHA256_HEX_SIZE]; /* of the last one that could be read */
    char held[SHA256_HEX_SIZE];
    int64_t held_since_ms;
    char error[512]; /* of the last fetch; "" when it was good */
};

struct allowlist_source {
    struct role_ctx *role;
    struct dispatcher *d;
    const struct clients *clients;
    struct worker *worker;
    struct watched files[2];
    size_t n;
    bool reported_known;         /* what is in force, to the metrics */
    char trouble[URL_MAX + 600]; /* for allowlist_source_trouble */
};

enum allowlist_verdict allowlist_classify(const struct allowlist_candidate *c, int64_t now_ms,
                                          int64_t ttl_ms)
{
    if (strcmp(c->sha, c->in_force_sha) == 0)
        return ALLOWLIST_SAME;
    if (!c->list || !c->in_force)
        return ALLOWLIST_PUBLISH;
    if (2 * allowlist_lost(c->in_force, c->list) <= allowlist_size(c->in_force))
        return ALLOWLIST_PUBLISH;
    if (strcmp(c->sha, c->held_sha) == 0 && now_ms - c->held_since_ms >= ttl_ms)
        return ALLOWLIST_PUBLISH;
    return ALLOWLIST_HOLD;
}

struct allowlist_source *allowlist_source_new(struct role_ctx *role, struct dispatcher *d,
                                              const struct clients *clients, struct worker *worker)
{
    struct allowlist_source *s = mem_alloc(1, sizeof(*s));
    *s = (struct allowlist_source){ .role = role, .d = d, .clients = clients, .worker = worker };
    s->files[s->n++] = (struct watched){
        .source = s, .name = "allowlist", .from = &d->allowlist, .is_list = true
    };
    if (d->has_providers)
        s->files[s->n++] =
            (struct watched){ .source = s, .name = "providers", .from = &d->providers };
    return s;
}

void allowlist_source_free(struct allowlist_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->files[i].etag);
    free(s);
}

/* ---- what is reported ---- */

static void set(const struct watched *w, size_t family, double to)
{
    metrics_set(role_metrics(w->source->role), family, METRIC_LABELS(str_of(w->name)), to);
}

/* For the pages, which are public: error names no host. Redis may be unavailable; the metrics and
 * the log say the same. */
static void store_in_redis(const struct watched *w, const char *error, const char *sha)
{
    const struct redis_value *v;
    char at[CLOCK_TEXT_SIZE];
    struct why why;
    if (!w->is_list)
        return;
    clock_format(clock_wall_ms(), at);
    struct str argv[10] = { STR_LIT("HSET"),        STR_LIT(KEY_ALLOWLIST), STR_LIT("source"),
                            str_of(w->from->shown), STR_LIT("error"),       str_of(error) };
    size_t n = 6;
    if (!*error) {
        argv[n++] = STR_LIT("fetched_at");
        argv[n++] = str_of(at);
    }
    if (sha) {
        argv[n++] = STR_LIT("sha");
        argv[n++] = str_of(sha);
    }
    if (redis_call(w->source->clients->redis, &v, n, argv, &why))
        log_debug("allowlist_not_stored", LOG_STR("error", str_of(why.text)));
}

static void count_fetch(const struct watched *w, const char *result)
{
    metrics_add(role_metrics(w->source->role), M_ALLOWLIST_FETCHES,
                METRIC_LABELS(str_of(w->name), str_of(result)), 1);
}

/* A repeated error is logged once. */
static void trouble(struct watched *w, const char *event, const char *result, const char *error)
{
    bool news = strcmp(w->error, error) != 0;
    snprintf(w->error, sizeof(w->error), "%s", error);
    count_fetch(w, result);
    if (news)
        log_error(event, LOG_STR("file", str_of(w->name)),
                  LOG_STR("source", str_of(w->from->shown)), LOG_STR("error", str_of(error)));
    store_in_redis(w, strcmp(result, "refused") ? "it cannot be fetched" : error, NULL);
}

static void report_fetched(const struct watched *w, int64_t at_ms)
{
    set(w, M_ALLOWLIST_FETCHED, (double)at_ms / 1000);
}

/* ---- a version that was fetched ---- */

static void publish_version(const struct watched *w, struct str body, size_t size)
{
    struct headers headers;
    headers_init(&headers);
    headers_put(&headers, "source", str_of(w->from->shown));
    headers_put(&headers, "sha", str_of(w->sha));
    headers_put_i64(&headers, "fetched_ms", clock_wall_ms());
    struct post post = {
        .topic = TOPIC_ALLOWLIST,
        .key = str_of(w->name),
        .value = body,
        .headers = &headers,
    };
    worker_put(w->source->worker, &post);
    log_info("allowlist_loaded", LOG_STR("file", str_of(w->name)),
             LOG_STR("source", str_of(w->from->shown)), LOG_STR("sha", str_of(w->sha)),
             LOG_INT("entries", (int64_t)size));
}

static void hold(struct watched *w, const struct allowlist_candidate *c)
{
    if (strcmp(w->held, w->sha) == 0)
        return;
    memcpy(w->held, w->sha, sizeof(w->held));
    w->held_since_ms = clock_mono_ms();
    log_warn("allowlist_held", LOG_STR("source", str_of(w->from->shown)),
             LOG_STR("sha", str_of(w->sha)),
             LOG_INT("lost", (int64_t)allowlist_lost(c->in_force, c->list)),
             LOG_INT("of", (int64_t)allowlist_size(c->in_force)),
             LOG_INT("ttl_ms", w->source->d->ttl_ms));
}

/* Borrowed from the version. */
static const char *in_force_sha(const struct watched *w, const struct allowlist_version *version)
{
    return w->is_list ? version->sha : version->providers_sha;
}

static void decide(struct watched *w, struct str body, const struct allowlist *list, size_t size)
{
    static const char *const results[] = {
        [ALLOWLIST_SAME] = "same", [ALLOWLIST_PUBLISH] = "new", [ALLOWLIST_HOLD] = "held"
    };
    struct allowlist_source *s = w->source;
    sha256_hex(body, w->sha);
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    struct allowlist_candidate c = {
        .in_force = w->is_list ? version->list : NULL,
        .list = list,
        .in_force_sha = in_force_sha(w, version),
        .sha = w->sha,
        .held_sha = w->held,
        .held_since_ms = w->held_since_ms,
    };
    enum allowlist_verdict verdict = allowlist_classify(&c, clock_mono_ms(), s->d->ttl_ms);
    bool held = verdict == ALLOWLIST_HOLD;
    if (held)
        hold(w, &c);
    else
        w->held[0] = 0;
    allowlist_feed_release(s->d->feed, version);
    if (verdict == ALLOWLIST_PUBLISH)
        publish_version(w, body, size);
    count_fetch(w, results[verdict]);
    set(w, M_ALLOWLIST_HELD, held);
    store_in_redis(w, "", held ? NULL : w->sha);
}

static void came(struct watched *w, struct str body)
{
    struct allowlist *list = NULL;
    struct providers *providers = NULL;
    struct why why;
    const char *file = content_name(w->from);
    struct str text = body.ptr ? body : STR_LIT("");
    enum err err = w->is_list ? allowlist_parse(&list, file, text, &why)
                              : providers_parse(&providers, file, text, &why);
    set(w, M_ALLOWLIST_VALID, !err);
    if (err) {
        trouble(w, "allowlist_refused", "refused", why.text);
        return;
    }
    w->error[0] = 0;
    decide(w, text, list, list ? allowlist_size(list) : providers_size(providers));
    allowlist_free(list);
    providers_free(providers);
}

/* ---- fetching ---- */

static void fetched(void *opaque, const struct content_answer *answer)
{
    struct watched *w = opaque;
    struct dispatcher *d = w->source->d;
    int64_t wait_ms = d->ttl_ms;
    w->fetching = false;
    if (answer->err) {
        trouble(w, "allowlist_unreachable", "unreachable", answer->reason);
        wait_ms = d->ttl_ms < AGAIN_MS ? d->ttl_ms : AGAIN_MS;
    } else {
        report_fetched(w, clock_wall_ms());
        if (answer->unchanged) {
            count_fetch(w, "same");
            store_in_redis(w, w->error, w->sha);
        } else {
            free(w->etag);
            w->etag = str_dup(answer->etag);
            came(w, answer->body);
        }
    }
    const struct allowlist_version *version = allowlist_feed_get(d->feed);
    if (w->is_list && !version->list && w->error[0] && wait_ms > AGAIN_FIRST_MS)
        wait_ms = AGAIN_FIRST_MS;
    allowlist_feed_release(d->feed, version);
    w->due_ms = clock_mono_ms() + (w->again ? 0 : wait_ms);
    w->again = false;
}

/* Sends the ETag only while the version that was read last is in force and the last fetch worked.
 * Else (refused, unreachable, held, or another router published since) fetches and compares again.
 */
static void fetch(struct watched *w)
{
    struct allowlist_source *s = w->source;
    struct why why;
    w->fetching = true;
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    bool in_force = !w->error[0] && strcmp(w->sha, in_force_sha(w, version)) == 0;
    allowlist_feed_release(s->d->feed, version);
    enum err err =
        content_fetch(w->from, s->clients->github, s->clients->http,
                      in_force ? str_of(w->etag) : STR_NONE, ALLOWLIST_MAX_BYTES, fetched, w, &why);
    if (err) {
        struct content_answer answer = { .err = err, .reason = why.text };
        fetched(w, &answer);
    }
}

void allowlist_source_turn(struct allowlist_source *s)
{
    if (!allowlist_feed_caught_up(s->d->feed))
        return;
    const struct allowlist_version *version = allowlist_feed_get(s->d->feed);
    /* Start the age metric from the stored version (0: none), so that an unreachable file ages
     * too. */
    for (size_t i = 0; i < s->n && !s->reported_known; i++)
        report_fetched(&s->files[i],
                       s->files[i].is_list ? version->fetched_ms : version->providers_fetched_ms);
    s->reported_known = true;
    if (version->list)
        metrics_set(role_metrics(s->role), M_ALLOWLIST_REPOS, NULL,
                    (double)allowlist_size(version->list));
    allowlist_feed_release(s->d->feed, version);
    for (size_t i = 0; i < s->n; i++)
        if (!s->files[i].fetching && s->files[i].due_ms <= clock_mono_ms())
            fetch(&s->files[i]);
}

void allowlist_source_pushed(struct allowlist_source *s, const struct event_facts *facts,
                             struct str body)
{
    for (size_t i = 0; i < s->n; i++) {
        struct watched *w = &s->files[i];
        char ref[sizeof(w->from->ref) + 16];
        snprintf(ref, sizeof(ref), "refs/heads/%s", w->from->ref);
        if (w->from->kind != CONTENT_GITHUB || strcmp(facts->ref, ref) != 0 ||
            !str_eq_nocase(str_of(facts->repo), str_of(w->from->repo)) ||
            !event_push_touches(body, w->from->path))
            continue;
        w->due_ms = 0;
        w->again = w->fetching;
    }
}

const char *allowlist_source_trouble(struct allowlist_source *s)
{
    if (!allowlist_feed_caught_up(s->d->feed))
        return "the allowlist topic has not been read yet";
    const struct watched *w = &s->files[0];
    snprintf(s->trouble, sizeof(s->trouble), "no allowlist yet: %s: %s", w->from->shown,
             w->error[0] ? w->error : "not fetched yet");
    return s->trouble;
}
