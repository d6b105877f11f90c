#include "oidc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/base/wake.h"
#include "../common/crypto/jwt.h"
#include "../common/io/http_client.h"
#include "../common/model/callback.h"

#define MAX_ISSUERS    16
#define REFRESH_MS     3600000 /* so that keys which were withdrawn go */
#define RETRY_MS       5000    /* after a fetch that failed */
#define UNKNOWN_KID_MS 30000   /* unless the options say otherwise */
#define FETCH_MS       5000
#define TICK_MS        1000

/* Keys in use by a verification outlive their replacement. */
struct keyset {
    size_t users; /* under oidc.lock */
    struct jwks *jwks;
};

struct issuer {
    struct oidc *oidc;
    char *name, *url, *owners; /* never change; owners NULL: all, else with blanks between them */
    /* all that follows is under oidc.lock */
    struct keyset *keys; /* NULL: none yet */
    int64_t fetched_ms;  /* monotonic; of keys */
    int64_t tried_ms;    /* when the last fetch ended; 0: none has */
    bool wanted;         /* somebody waits for a fetch */
    bool fetching;
    unsigned fetches; /* ended ones, for who waits for the next */
};

struct oidc {
    struct issuer issuers[MAX_ISSUERS];
    size_t n;
    char *audience;
    int unknown_kid_ms;
    struct http_client *client; /* of the thread */
    struct wake wake;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t fetched;
    bool stopping; /* under lock */
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* With the lock held. */
static void keyset_release(struct keyset *keys)
{
    if (!keys || --keys->users > 0)
        return;
    jwks_free(keys->jwks);
    free(keys);
}

/* With the lock held. A failed fetch is tried again soon; good keys are renewed now and then. */
static bool fetch_is_due(const struct issuer *i, int64_t now_ms)
{
    if (i->fetching)
        return false;
    if (i->tried_ms == 0 || i->wanted)
        return true;
    bool failed = !i->keys || i->fetched_ms != i->tried_ms;
    return now_ms - i->tried_ms >= (failed ? RETRY_MS : REFRESH_MS);
}

/* On the thread. */
static void fetch_ended(struct issuer *i, struct jwks *jwks)
{
    struct oidc *o = i->oidc;
    pthread_mutex_lock(&o->lock);
    i->fetching = false;
    i->wanted = false;
    i->fetches++;
    i->tried_ms = clock_mono_ms();
    if (jwks) {
        keyset_release(i->keys);
        i->keys = mem_alloc(1, sizeof(*i->keys));
        *i->keys = (struct keyset){ .users = 1, .jwks = jwks };
        i->fetched_ms = i->tried_ms;
    }
    pthread_cond_broadcast(&o->fetched);
    pthread_mutex_unlock(&o->lock);
}

static void fetch_answered(void *opaque, const struct http_answer *answer)
{
    struct issuer *i = opaque;
    struct jwks *jwks = NULL;
    struct why why;
    enum err err = answer->err             ? why_set(&why, answer->err, "%s", answer->reason)
                   : answer->status != 200 ? why_set(&why, ERR_RETRY, "status %d", answer->status)
                                           : jwks_parse(&jwks, answer->body, &why);
    if (err)
        log_warn("jwks_fetch_failed", LOG_STR("issuer", str_of(i->name)),
                 LOG_STR("reason", str_of(why.text)));
    else
        log_debug("jwks_fetched", LOG_STR("issuer", str_of(i->name)));
    fetch_ended(i, jwks);
}

static void fetch_start(struct issuer *i)
{
    const struct http_request request = {
        .method = "GET", .url = i->url, .timeout_ms = FETCH_MS, .max_body_bytes = 1 << 20
    };
    struct why why;
    if (!http_client_start(i->oidc->client, &request, fetch_answered, i, &why))
        return;
    log_warn("jwks_fetch_failed", LOG_STR("issuer", str_of(i->name)),
             LOG_STR("reason", str_of(why.text)));
    fetch_ended(i, NULL);
}

/* Starts what is due; false at the end. */
static bool fetches_start(struct oidc *o)
{
    struct issuer *due[MAX_ISSUERS];
    size_t n = 0;
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&o->lock);
    bool go_on = !o->stopping;
    for (size_t k = 0; go_on && k < o->n; k++) {
        if (!fetch_is_due(&o->issuers[k], now_ms))
            continue;
        o->issuers[k].fetching = true;
        due[n++] = &o->issuers[k];
    }
    pthread_mutex_unlock(&o->lock);
    for (size_t k = 0; k < n; k++)
        fetch_start(due[k]);
    return go_on;
}

static void *thread_main(void *opaque)
{
    struct oidc *o = opaque;
    for (;;) {
        wake_reset(&o->wake);
        if (!fetches_start(o))
            return NULL;
        http_client_poll(o->client, &o->wake, TICK_MS);
    }
}

/* With the lock held: whether it makes sense to wait for a fetch now. */
static bool fetch_ask(struct issuer *i)
{
    int64_t pause_ms = !i->keys ? RETRY_MS : i->oidc->unknown_kid_ms;
    if (!i->fetching && i->tried_ms != 0 && clock_mono_ms() - i->tried_ms < pause_ms)
        return false;
    i->wanted = true;
    wake_up(&i->oidc->wake);
    return true;
}

/* With the lock held. False when no fetch has ended in that time. */
static bool fetch_wait(struct issuer *i, int wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    struct timespec until = { until_ms / 1000, until_ms % 1000 * 1000000 };
    unsigned fetches = i->fetches;
    while (i->fetches == fetches && !i->oidc->stopping)
        if (pthread_cond_timedwait(&i->oidc->fetched, &i->oidc->lock, &until) != 0)
            break;
    return i->fetches != fetches;
}

/* With the lock held. */
static bool has_key(const struct issuer *i, struct str kid)
{
    return i->keys && jwks_has(i->keys->jwks, kid);
}

/* The issuer's keys; they are fetched if they are missing, or lack kid. NULL: kid may be one of its
 * keys, but the issuer could not be asked. */
static struct keyset *keyset_get(struct issuer *i, struct str kid, int wait_ms)
{
    pthread_mutex_lock(&i->oidc->lock);
    bool waited_in_vain = !has_key(i, kid) && fetch_ask(i) && !fetch_wait(i, wait_ms);
    bool asked = i->fetched_ms == i->tried_ms && !waited_in_vain;
    struct keyset *keys = asked || has_key(i, kid) ? i->keys : NULL;
    if (keys)
        keys->users++;
    pthread_mutex_unlock(&i->oidc->lock);
    return keys;
}

static void keyset_put(struct oidc *o, struct keyset *keys)
{
    pthread_mutex_lock(&o->lock);
    keyset_release(keys);
    pthread_mutex_unlock(&o->lock);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* *ret is the caller's, also when it is refused. *issuer: its number. */
static bool token_read(const struct oidc *o, struct str text, struct jwt **ret, size_t *issuer,
                       struct answer *a)
{
    struct why why;
    if (jwt_read(ret, text, &why))
        return answer_refuse(a, 401, "token_malformed", "%s", why.text);
    if (!str_is(jwt_header(*ret, "alg"), "RS256"))
        return answer_refuse(a, 401, "token_algorithm", "only tokens signed with RS256 are taken");
    for (*issuer = 0; *issuer < o->n; ++*issuer)
        if (str_is(jwt_claim(*ret, "iss"), o->issuers[*issuer].name))
            return true;
    return answer_refuse(a, 401, "token_issuer",
                         "the token's issuer %.*s is not one of those that the relay trusts "
                         "(CRCR_OIDC_ISSUERS)",
                         STR_ARG(str_cut(jwt_claim(*ret, "iss"), 200)));
}

const char *oidc_audience(const struct oidc *o)
{
    return o->audience;
}

bool oidc_glance(const struct oidc *o, struct str text, struct answer *a)
{
    struct jwt *CLEANUP(jwt_cleanup) token = NULL;
    size_t issuer;
    return token_read(o, text, &token, &issuer, a);
}

enum oidc_result oidc_verify(struct oidc *o, struct str text, int wait_ms, struct jwt **ret,
                             struct str *issuer, struct answer *a)
{
    struct jwt *CLEANUP(jwt_cleanup) token = NULL;
    size_t k;
    if (!token_read(o, text, &token, &k, a))
        return OIDC_REFUSED;
    struct keyset *keys = keyset_get(&o->issuers[k], jwt_header(token, "kid"), wait_ms);
    if (!keys) {
        (void)answer_later(a, 503, "issuer_keys", 5, "the keys of %s cannot be had now",
                           o->issuers[k].name);
        return OIDC_NO_KEYS;
    }
    struct why why;
    enum err err = jwt_verify_rs256(token, keys->jwks, o->audience, clock_wall_ms() / 1000,
                                    OIDC_LEEWAY_S, &why);
    keyset_put(o, keys);
    if (err) {
        (void)answer_refuse(a, 401, "token_bad", "%s", why.text);
        return OIDC_REFUSED;
    }
    *issuer = str_of(o->issuers[k].name);
    *ret = token;
    token = NULL;
    return OIDC_VERIFIED;
}

bool oidc_owner_check(const struct oidc *o, struct str issuer, struct str repo, struct answer *a)
{
    for (size_t k = 0; k < o->n; k++) {
        if (!str_is(issuer, o->issuers[k].name))
            continue;
        struct str rest = str_of(o->issuers[k].owners), owner;
        if (!rest.ptr)
            return true;
        while (str_split(&rest, ' ', &owner))
            if (owner.len > 0 && repo.len > owner.len && repo.ptr[owner.len] == '/' &&
                str_eq_nocase(str_cut(repo, owner.len), owner))
                return true;
    }
    return answer_refuse(a, 403, "issuer_owner", "%.*s may not speak for the owner of %.*s",
                         STR_ARG(issuer), STR_ARG(repo));
}

bool oidc_age(struct oidc *o, size_t i, struct str *issuer, double *age_s)
{
    if (i >= o->n)
        return false;
    struct issuer *at = &o->issuers[i];
    *issuer = str_of(at->name);
    pthread_mutex_lock(&o->lock);
    *age_s = !at->keys ? -1 : (double)(clock_mono_ms() - at->fetched_ms) / 1000;
    pthread_mutex_unlock(&o->lock);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum err issuers_read(struct oidc *o, const struct oidc_options *options, struct why *why)
{
    struct str rest = str_of(options->issuers), part;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        ptrdiff_t equals = str_find(part, '=');
        struct str owners = str_trim(str_from(part, (size_t)(equals + 1))), url;
        if (equals <= 0 || o->n == MAX_ISSUERS || !str_split(&owners, ' ', &url) ||
            str_find(owners, '/') >= 0)
            return why_set(why, ERR_REFUSE,
                           "CRCR_OIDC_ISSUERS: up to %d of issuer=jwks-url owner owner are "
                           "accepted, separated by commas",
                           MAX_ISSUERS);
        struct issuer *i = &o->issuers[o->n++];
        i->oidc = o;
        i->name = str_dup(str_trim(str_cut(part, (size_t)equals)));
        i->url = str_dup(url);
        if (http_url_check(i->name, true, why) || http_url_check(i->url, options->allow_http, why))
            return why_prefix(why, ERR_REFUSE, "CRCR_OIDC_ISSUERS");
        if (str_trim(owners).len > 0)
            i->owners = str_dup(owners);
        else if (strcmp(i->name, CALLBACK_ISSUER_ACTIONS) != 0 &&
                 strcmp(i->name, CALLBACK_ISSUER_BUILDKITE) != 0)
            return why_set(why, ERR_REFUSE,
                           "CRCR_OIDC_ISSUERS: %s needs the owners that it may speak for: "
                           "issuer=jwks-url owner owner",
                           i->name);
    }
    return OK;
}

static enum err thread_start(struct oidc *o, const struct oidc_options *options, struct why *why)
{
    const struct http_client_options client = { .user_agent = "crcr-ingest",
                                                .ca_file = options->ca_file };
    enum err err = http_client_new(&o->client, &client, why);
    if (err)
        return err;
    o->has_thread = pthread_create(&o->thread, NULL, thread_main, o) == 0;
    return o->has_thread ? OK : why_set(why, ERR_STOP, "cannot start the thread that fetches keys");
}

enum err oidc_new(struct oidc **ret, const struct oidc_options *options, struct why *why)
{
    struct oidc *o = mem_alloc(1, sizeof(*o));
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&o->fetched, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&o->lock, NULL);
    o->wake.fd = -1;
    o->audience = mem_dup(options->audience);
    o->unknown_kid_ms = options->unknown_kid_ms > 0 ? options->unknown_kid_ms : UNKNOWN_KID_MS;
    enum err err = wake_init(&o->wake, why);
    if (!err)
        err = issuers_read(o, options, why);
    if (!err && !options->check_only)
        err = thread_start(o, options, why);
    if (err) {
        oidc_free(o);
        return err;
    }
    *ret = o;
    return OK;
}

void oidc_free(struct oidc *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->stopping = true;
    pthread_cond_broadcast(&o->fetched);
    pthread_mutex_unlock(&o->lock);
    wake_up(&o->wake);
    if (o->has_thread)
        pthread_join(o->thread, NULL);
    http_client_free(o->client);
    for (size_t k = 0; k < o->n; k++) {
        keyset_release(o->issuers[k].keys);
        free(o->issuers[k].name);
        free(o->issuers[k].url);
        free(o->issuers[k].owners);
    }
    free(o->audience);
    wake_clear(&o->wake);
    pthread_cond_destroy(&o->fetched);
    pthread_mutex_destroy(&o->lock);
    free(o);
}
