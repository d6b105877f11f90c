#include "callback_route.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "callback.h"
#include "callback_steps.h"

#define WORKERS  4
#define STALE_US 8000000 /* the server has answered 503 by then */
#define RETRY_S  2

/* A callback that waits for a worker. */
struct waiting {
    struct http_exchange *x;
    int64_t since_us;
    struct waiting *prev, *next;
};

struct worker {
    struct callback_route *route;
    struct callback_worker self;
    pthread_t thread;
    bool running;
};

struct callback_route {
    struct callback_options options;
    struct callback_rate *rate;
    struct worker workers[WORKERS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiting *queue; /* under lock, oldest first */
    bool stopping;         /* under lock */
};

/* ---- before the body --------------------------------------------------------------------------
 */

void callback_begin(struct callback_route *r, struct http_exchange *x)
{
    struct str token;
    struct verdict v;
    if (callback_bearer(http_header(x, "Authorization"), &token, &v) &&
        oidc_glance(r->options.oidc, token, &v))
        return;
    struct request request;
    request_init(&request, x, &callback_names, STR_NONE);
    responder_answer(r->options.responder, &request, &v);
}

/* ---- the queue --------------------------------------------------------------------------------
 */

static void answer_later(struct callback_route *r, const struct waiting *w)
{
    struct request request;
    struct verdict v;
    request_init(&request, w->x, &callback_names, STR_NONE);
    request.started_us = w->since_us;
    (void)verdict_later(&v, 503, "overloaded", RETRY_S, "not stored, try again");
    responder_answer(r->options.responder, &request, &v);
}

/* What is in the queue is bounded by the server's limits on connections and on bodies in hand. */
void callback_handle(struct callback_route *r, struct http_exchange *x)
{
    struct waiting *w = mem_alloc(1, sizeof(*w));
    w->x = x;
    w->since_us = clock_mono_us();
    pthread_mutex_lock(&r->lock);
    DL_APPEND(r->queue, w);
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* The next one, the caller's; NULL at the end. */
static struct waiting *queue_take(struct callback_route *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->queue && !r->stopping)
        pthread_cond_wait(&r->changed, &r->lock);
    struct waiting *w = r->stopping ? NULL : r->queue;
    if (w)
        DL_DELETE(r->queue, w);
    pthread_mutex_unlock(&r->lock);
    return w;
}

static void *worker_main(void *opaque)
{
    struct worker *worker = opaque;
    for (struct waiting *w; (w = queue_take(worker->route)); free(w)) {
        if (clock_mono_us() - w->since_us < STALE_US)
            callback_steps_run(&worker->self, w->x, w->since_us);
        else
            answer_later(worker->route, w);
    }
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static enum err worker_start(struct callback_route *r, struct worker *worker, struct why *why)
{
    worker->route = r;
    worker->self.options = &r->options;
    worker->self.rate = r->rate;
    enum err err = redis_new(&worker->self.redis, &r->options.redis, why);
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
    r->rate = callback_rate_new(options->requests_per_min, options->bytes_per_min);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    enum err err = OK;
    for (size_t i = 0; !err && i < WORKERS; i++)
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
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < WORKERS; i++) {
        if (r->workers[i].running)
            pthread_join(r->workers[i].thread, NULL);
        redis_free(r->workers[i].self.redis);
    }
    struct waiting *w, *next;
    DL_FOREACH_SAFE(r->queue, w, next)
    {
        answer_later(r, w);
        free(w);
    }
    callback_rate_free(r->rate);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
