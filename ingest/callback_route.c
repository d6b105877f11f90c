#include "callback_route.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/crypto/jwt.h"
#include "../common/model/ids.h"
#include "../common/view/claims.h"
#include "../common/view/jobs.h"
#include "../common/view/keys.h"
#include "callback.h"
#include "callback_rate.h"
#include "callback_repeat.h"
#include "identity.h"
#include "whoami.h"

#define WORKERS      4
#define STALE_US     8000000 /* the server has answered 503 by then */
#define RETRY_S      2
#define KEYS_WAIT_MS 3000 /* of the 8 s that a request has */
#define JOB_KEY_MAX  8192
#define ANSWER_MAX   (32u << 10) /* a few warnings */

/* A callback that waits for a worker. */
struct waiting {
    struct http_exchange *x;
    const struct route_names *names;
    int64_t since_us;
    struct waiting *prev, *next;
};

/* Two queues: `ready`, and `keys` for callbacks whose issuer must be asked for its keys first. Only
 * the one worker of `keys` waits for an issuer. Any client can send a token that names an issuer
 * which does not answer; it must not hold up the callbacks of others. */
struct queue {
    struct waiting *first; /* oldest first; as the next, under lock */
    pthread_cond_t changed;
};

struct callback_worker {
    struct callback_route *route;
    struct queue *queue;
    struct redis *redis;
    pthread_t thread;
    bool running;
};

struct callback_route {
    struct callback_options options;
    struct callback_rate *rate;
    struct callback_worker workers[WORKERS + 1]; /* the last one for keys */
    pthread_mutex_t lock;
    struct queue ready, keys;
    bool stopping; /* under lock */
};

/* ---- before the body --------------------------------------------------------------------- */

void callback_begin(struct callback_route *r, struct http_exchange *x,
                    const struct route_names *names)
{
    struct str token;
    struct answer a;
    if (callback_bearer(http_header(x, "Authorization"), &token, &a) &&
        oidc_glance(r->options.oidc, token, &a))
        return;
    struct request request;
    request_init(&request, x, names, STR_NONE);
    responder_answer(r->options.responder, &request, &a);
}

/* One callback on its way through the steps. */
struct visit {
    const struct callback_worker *worker;
    struct request request;
    struct jwt *token;
    struct str issuer;
    bool keys_missing; /* of the token's issuer */
    struct run_claims run;
    struct callback_body body;
    const struct allowlist_version *version;
    const struct allowlist_entry *entry; /* of version */
    struct provenance provenance;
    const char *status;
    struct buf whoami; /* the answer to it */
    struct answer answer;
};

/* ---- 1, 2, 3: token, identity, allowlist ------------------------------------------------- */

/* The limit counts from when the callback came: those in the queue do not add up their waits. */
static int keys_wait_ms(const struct visit *t)
{
    int64_t waited_ms = (clock_mono_us() - t->request.started_us) / 1000;
    bool may_wait = t->worker->queue == &t->worker->route->keys && waited_ms < KEYS_WAIT_MS;
    return may_wait ? KEYS_WAIT_MS - (int)waited_ms : 0;
}

static bool step_token(struct visit *t)
{
    struct str token;
    if (!callback_bearer(http_header(t->request.x, "Authorization"), &token, &t->answer))
        return false;
    enum oidc_result result = oidc_verify(t->worker->route->options.oidc, token, keys_wait_ms(t),
                                          &t->token, &t->issuer, &t->answer);
    t->keys_missing = result == OIDC_NO_KEYS;
    return result == OIDC_VERIFIED;
}

/* Until the topic allowlist was read, no pipeline is registered and no issuer is mapped: that must
 * not refuse a callback for good. */
static bool step_identity(struct visit *t)
{
    if (identity_check(t->issuer, jwt_claims(t->token), t->version->providers, t->request.repo,
                       &t->answer))
        return oidc_owner_check(t->worker->route->options.oidc, t->issuer, str_of(t->request.repo),
                                &t->answer);
    return !t->version->list && callback_admit(NULL, STR_NONE, &t->entry, &t->answer);
}

static bool step_allowlist(struct visit *t)
{
    return callback_admit(t->version->list, str_of(t->request.repo), &t->entry, &t->answer) &&
           identity_ids_check(t->issuer, jwt_claims(t->token), t->entry, &t->answer);
}

/* ---- 4: rate --------------------------------------------------------------------------------- */

static bool step_rate(struct visit *t)
{
    const struct callback_options *o = &t->worker->route->options;
    bool alone;
    struct rate_wait wait =
        callback_rate_take(t->worker->route->rate, t->worker->redis, t->entry->repo,
                           (int64_t)http_body(t->request.x).len, &alone);
    if (alone)
        metrics_add(o->responder->metrics, INGEST_LIMITER_FALLBACKS, NULL, 1);
    if (wait.day) {
        char until[CLOCK_TEXT_SIZE];
        clock_format(clock_wall_ms() + wait.seconds * INT64_C(1000), until);
        return answer_later(&t->answer, 429, "day_quota", wait.seconds,
                            "the quota of %lld bytes of callbacks a day is used up; it ends at %s",
                            (long long)o->bytes_a_day, until);
    }
    return wait.seconds == 0 ||
           answer_later(&t->answer, 429, "rate_limited", wait.seconds,
                        "more than %lld requests or %lld MiB a minute, and what ten minutes allow "
                        "is used up",
                        (long long)o->requests_per_min, (long long)(o->bytes_per_min >> 20));
}

/* ---- 5, 6, 7: body, fields, provenance ------------------------------------------------------- */

/* Not before this step: parsing costs CPU, and anybody with a token of the issuer could make us do
 * it. */
static bool step_body(struct visit *t)
{
    run_claims_read(t->issuer, jwt_claims(t->token), &t->run);
    if (!callback_body_read(http_body(t->request.x), str_of(t->run.run_attempt), &t->body,
                            &t->answer))
        return false;
    if (t->body.fields_valid)
        (void)str_copy(t->request.delivery, sizeof(t->request.delivery),
                       str_of(t->body.fields.delivery_id));
    return callback_fields_check(&t->body, t->entry, &t->answer) &&
           run_claims_check(&t->run, &t->body.fields, &t->answer);
}

static bool provenance_by_token(struct visit *t)
{
    const struct callback *fields = &t->body.fields;
    struct callback_token token;
    struct why why;
    if (callback_token_verify(t->worker->route->options.keys, str_of(fields->callback_token),
                              clock_wall_ms() / 1000, &token, &why))
        return answer_refuse(&t->answer, 403, "callback_token_bad", "callback_token: %s", why.text);
    return provenance_of_token(fields, t->entry->repo, &token, &t->provenance, &t->answer);
}

/* The record first: it may be there although the view around it is inconsistent. */
static void dispatch_look(struct redis *redis, struct str delivery, struct str repo,
                          struct dispatch_lookup *ret)
{
    struct why why;
    bool found = false;
    ret->result = LOOKUP_UNAVAILABLE;
    if (dispatch_record_get(redis, delivery, repo, &found, &ret->record, &why))
        return;
    if (found) {
        ret->result = LOOKUP_FOUND;
        return;
    }
    const struct redis_value *epoch;
    if (!redis_call(redis, &epoch, REDIS_ARGS(STR_LIT("GET"), STR_LIT(KEY_EPOCH)), &why))
        ret->result = epoch->type == REDIS_NIL ? LOOKUP_NO_EPOCH : LOOKUP_NONE;
}

static bool pending_check(struct visit *t)
{
    int64_t bytes = (int64_t)http_body(t->request.x).len;
    int wait_s = callback_rate_pending(t->worker->redis, t->entry->repo, bytes);
    return wait_s == 0 ||
           answer_later(&t->answer, 429, "pending_limited", wait_s,
                        "the dispatch of this delivery is not known yet; until then %d callbacks "
                        "a minute of at most %d KiB are accepted",
                        CALLBACK_PENDING_A_MINUTE, CALLBACK_PENDING_MAX_BYTES >> 10);
}

static bool step_provenance(struct visit *t)
{
    const struct callback *fields = &t->body.fields;
    if (callback_is_self(fields)) {
        provenance_of_self(fields, &t->provenance);
        return true;
    }
    if (fields->callback_token[0] != '\0' && t->worker->route->options.keys)
        return provenance_by_token(t);
    struct dispatch_lookup lookup;
    dispatch_look(t->worker->redis, str_of(fields->delivery_id), t->entry->repo, &lookup);
    return provenance_of_lookup(fields, &lookup, clock_wall_ms(), &t->provenance, &t->answer) &&
           (t->provenance.kind != PROVENANCE_PENDING || lookup.result != LOOKUP_NONE ||
            pending_check(t));
}

/* ---- 8: what the view knows; then publish ---------------------------------------------------- */

static bool step_view(struct visit *t)
{
    const struct callback *fields = &t->body.fields;
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, JOB_KEY_MAX);
    job_key(&key, t->entry->repo, str_of(fields->delivery_id), str_of(fields->workflow_name),
            str_of(fields->job_name), str_of(fields->check_run_id));
    enum job_state state = JOB_NONE;
    char conclusion[32] = "";
    bool found = false;
    struct why why;
    if (job_state_get(t->worker->redis, buf_str(&key), str_of(fields->run_attempt), &found, &state,
                      conclusion, &why) ||
        !found)
        state = JOB_NONE; /* best effort: the fold decides */
    return callback_repeat_check(fields, state, conclusion, &t->status, &t->answer);
}

static void visit_publish(struct visit *t)
{
    const struct callback_options *o = &t->worker->route->options;
    const struct callback *fields = &t->body.fields;
    const struct callback_origin origin = { .repo = t->entry->repo,
                                            .level = t->entry->level,
                                            .issuer = t->issuer,
                                            .run_attempt = str_of(t->run.run_attempt),
                                            .received_ms = http_received_ms(t->request.x) };
    struct headers headers;
    headers_init(&headers);
    callback_to_headers(fields, &origin, &t->provenance, &headers);
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, DELIVERY_MAX + 1 + REPO_MAX);
    callback_key(&key, fields, t->entry->repo);
    struct buf CLEANUP(buf_clear) answer = BUF_INIT(ANSWER_MAX);
    callback_answer(&answer, t->status, fields);
    metrics_add(o->responder->metrics, INGEST_PROVENANCE,
                METRIC_LABELS(str_of(provenance_name(t->provenance.kind))), 1);
    struct publication publication = { .topic = o->topic,
                                       .key = buf_str(&key),
                                       .headers = &headers,
                                       .status = 200,
                                       .answer = buf_str(&answer) };
    publication.value = http_take_body(t->request.x, &publication.value_len);
    responder_publish(o->responder, &t->request, &publication);
}

/* Instead of the steps from 3 on. Who is ignored is not rated, as with callbacks. */
static bool step_whoami(struct visit *t)
{
    const struct callback_options *o = &t->worker->route->options;
    if (!t->version->list)
        return callback_admit(NULL, STR_NONE, &t->entry, &t->answer);
    t->entry = allowlist_find(t->version->list, str_of(t->request.repo));
    if (t->entry && (!identity_ids_check(t->issuer, jwt_claims(t->token), t->entry, &t->answer) ||
                     (t->entry->level >= 2 && !step_rate(t))))
        return false;
    const struct provider *provider = providers_of(t->version->providers, t->issuer);
    const struct whoami w = { .repo = str_of(t->request.repo),
                              .issuer = t->issuer,
                              .audience = oidc_audience(o->oidc),
                              .provider = provider ? provider->name : NULL,
                              .entry = t->entry,
                              .public_url = o->public_url };
    buf_init(&t->whoami, ANSWER_MAX);
    whoami_put(&t->whoami, &w);
    return answer_ignore(&t->answer, "answered", "");
}

/* Takes the request through all steps: published or answered, the exchange is gone. False: it must
 * wait for keys first. */
static bool steps_run(const struct callback_worker *worker, const struct waiting *w)
{
    const struct callback_options *o = &worker->route->options;
    static bool (*const callback_steps[])(
        struct visit *) = { step_token, step_identity,   step_allowlist, step_rate,
                            step_body,  step_provenance, step_view,      NULL };
    static bool (*const whoami_steps[])(struct visit *) = { step_token, step_identity, step_whoami,
                                                            NULL };
    struct visit *t = mem_alloc(1, sizeof(*t));
    t->worker = worker;
    request_init(&t->request, w->x, w->names, STR_NONE);
    t->request.started_us = w->since_us;
    t->version = allowlist_feed_get(o->feed);
    bool (*const *step)(struct visit *) = w->names == &whoami_names ? whoami_steps : callback_steps;
    bool accepted = true;
    while (accepted && *step)
        accepted = (*step++)(t);
    /* The callback may wait for the keys, but not on this worker. */
    bool must_wait = t->keys_missing && worker->queue == &worker->route->ready;
    if (accepted)
        visit_publish(t);
    else if (t->whoami.len)
        responder_answer_with(o->responder, &t->request, &t->answer, buf_str(&t->whoami));
    else if (!must_wait)
        responder_answer(o->responder, &t->request, &t->answer);
    buf_clear(&t->whoami);
    callback_body_clear(&t->body);
    allowlist_feed_release(o->feed, t->version);
    jwt_free(t->token);
    free(t);
    return !must_wait;
}

/* ---- the queue and its threads ----------------------------------------------------------- */

static void answer_overloaded(struct callback_route *r, const struct waiting *w)
{
    struct request request;
    struct answer a;
    request_init(&request, w->x, w->names, STR_NONE);
    request.started_us = w->since_us;
    (void)answer_later(&a, 503, "overloaded", RETRY_S, "not stored, try again");
    responder_answer(r->options.responder, &request, &a);
}

static void queue_append(struct callback_route *r, struct queue *queue, struct waiting *w)
{
    pthread_mutex_lock(&r->lock);
    DL_APPEND(queue->first, w);
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&r->lock);
}

/* The queues' length is bounded by the server's limits on connections and on bodies in hand. */
void callback_handle(struct callback_route *r, struct http_exchange *x,
                     const struct route_names *names)
{
    struct waiting *w = mem_alloc(1, sizeof(*w));
    w->x = x;
    w->names = names;
    w->since_us = clock_mono_us();
    queue_append(r, &r->ready, w);
}

/* The next one, the caller's; NULL at the end. */
static struct waiting *queue_take(struct callback_route *r, struct queue *queue)
{
    pthread_mutex_lock(&r->lock);
    while (!queue->first && !r->stopping)
        pthread_cond_wait(&queue->changed, &r->lock);
    struct waiting *w = r->stopping ? NULL : queue->first;
    if (w)
        DL_DELETE(queue->first, w);
    pthread_mutex_unlock(&r->lock);
    return w;
}

static void *worker_main(void *opaque)
{
    struct callback_worker *worker = opaque;
    struct callback_route *r = worker->route;
    for (struct waiting *w; (w = queue_take(r, worker->queue));) {
        if (clock_mono_us() - w->since_us >= STALE_US)
            answer_overloaded(r, w);
        else if (!steps_run(worker, w)) {
            queue_append(r, &r->keys, w);
            continue;
        }
        free(w);
    }
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------- */

static enum err worker_start(struct callback_route *r, struct callback_worker *worker,
                             struct why *why)
{
    worker->route = r;
    worker->queue = worker < r->workers + WORKERS ? &r->ready : &r->keys;
    enum err err = redis_new(&worker->redis, &r->options.redis, why);
    if (err)
        return err;
    worker->running = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    return worker->running ? OK : why_set(why, ERR_STOP, "cannot start a thread for callbacks");
}

enum err callback_route_new(struct callback_route **ret, const struct callback_options *options,
                            struct why *why)
{
    struct callback_route *r = mem_alloc(1, sizeof(*r));
    r->options = *options;
    r->rate =
        callback_rate_new(options->requests_per_min, options->bytes_per_min, options->bytes_a_day);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->ready.changed, NULL);
    pthread_cond_init(&r->keys.changed, NULL);
    enum err err = OK;
    for (size_t i = 0; !err && i <= WORKERS; i++)
        err = worker_start(r, &r->workers[i], why);
    if (err) {
        callback_route_free(r);
        return err;
    }
    *ret = r;
    return OK;
}

void callback_route_free(struct callback_route *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->ready.changed);
    pthread_cond_broadcast(&r->keys.changed);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i <= WORKERS; i++) {
        if (r->workers[i].running)
            pthread_join(r->workers[i].thread, NULL);
        redis_free(r->workers[i].redis);
    }
    struct waiting *w, *next;
    DL_CONCAT(r->ready.first, r->keys.first);
    DL_FOREACH_SAFE(r->ready.first, w, next)
    {
        answer_overloaded(r, w);
        free(w);
    }
    callback_rate_free(r->rate);
    pthread_cond_destroy(&r->ready.changed);
    pthread_cond_destroy(&r->keys.changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
