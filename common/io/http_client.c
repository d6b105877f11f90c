#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/standstill.h"
#include "http_client_inner.h"

enum { CONNECTIONS_HOST = 32, CONNECTIONS_KEPT = 256, STREAMS = 100, IDLE_CALLS_MAX = 256 };

struct http_client {
    CURLM *multi;
    struct http_client_options options; /* with copies of the strings */
    struct standstill standstill;
    struct http_call *in_flight;
    size_t n_in_flight;
    struct http_call *idle; /* a stack */
    size_t n_idle;
    bool closing;
};

static void curl_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum err http_client_new(struct http_client **ret, const struct http_client_options *options,
                         struct why *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_start);
    CURLM *multi = curl_multi_init();
    if (!multi)
        return why_set(why, ERR_STOP, "curl did not start");
    struct http_client *c = mem_alloc(1, sizeof(*c));
    c->multi = multi;
    c->options = *options;
    c->options.user_agent = mem_dup(options->user_agent);
    c->options.ca_file = mem_dup(options->ca_file);
    long per_host =
        options->max_connections_host ? options->max_connections_host : CONNECTIONS_HOST;
    long streams = options->max_streams ? options->max_streams : STREAMS;
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS,
                      per_host > CONNECTIONS_KEPT ? per_host : (long)CONNECTIONS_KEPT);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, streams);
    *ret = c;
    return OK;
}

/* ---- calls, used again and again ---------------------------------------------------- */

static struct http_call *call_take(struct http_client *c)
{
    struct http_call *call = c->idle;
    if (!call)
        return http_call_new();
    LL_DELETE(c->idle, call);
    c->n_idle--;
    return call;
}

static void call_put_back(struct http_client *c, struct http_call *call)
{
    if (c->n_idle == IDLE_CALLS_MAX) {
        http_call_free(call);
        return;
    }
    http_call_rest(call);
    LL_PREPEND(c->idle, call);
    c->n_idle++;
}

static void call_end(struct http_client *c, struct http_call *call)
{
    curl_multi_remove_handle(c->multi, call->easy);
    DL_DELETE(c->in_flight, call);
    c->n_in_flight--;
}

enum err http_client_start(struct http_client *c, const struct http_request *request,
                           http_answered_fn *done, void *opaque, struct why *why)
{
    enum err err = http_url_check(request->url, c->options.allow_http, why);
    if (err)
        return err;
    standstill_look(&c->standstill, clock_mono_ms());
    struct http_call *call = c->closing ? NULL : call_take(c);
    if (!call)
        return why_set(why, ERR_RETRY, "no more requests are taken");
    err = http_call_set(call, &c->options, request, why);
    CURLMcode failed = err ? CURLM_OK : curl_multi_add_handle(c->multi, call->easy);
    if (failed)
        err = why_set(why, ERR_RETRY, "curl: %s", curl_multi_strerror(failed));
    if (err) {
        call_put_back(c, call);
        return err;
    }
    call->done = done;
    call->opaque = opaque;
    call->standstill = c->options.only_fresh ? &c->standstill : NULL;
    DL_APPEND(c->in_flight, call);
    c->n_in_flight++;
    return OK;
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    c->closing = true;
    for (struct http_call *call; (call = c->in_flight); http_call_free(call)) {
        call_end(c, call);
        http_call_give_up(call);
    }
    for (struct http_call *call; (call = c->idle); http_call_free(call))
        LL_DELETE(c->idle, call);
    curl_multi_cleanup(c->multi);
    free((char *)(uintptr_t)c->options.user_agent);
    free((char *)(uintptr_t)c->options.ca_file);
    free(c);
}

/* ---- the loop ----------------------------------------------------------------------- */

/* Calls back for all that has ended; the callbacks may start new requests. */
static size_t deliver(struct http_client *c)
{
    size_t n = 0;
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        struct http_call *call;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        call_end(c, call);
        http_call_answer(call, code);
        call_put_back(c, call);
        n++;
    }
    return n;
}

void http_client_poll(struct http_client *c, struct wake *wake, int timeout_ms)
{
    struct curl_waitfd extra = { .fd = wake ? wake->fd : -1, .events = CURL_WAIT_POLLIN };
    int running;
    standstill_look(&c->standstill, clock_mono_ms());
    curl_multi_perform(c->multi, &running);
    if (deliver(c))
        timeout_ms = 0;
    curl_multi_poll(c->multi, &extra, wake ? 1 : 0, timeout_ms, NULL);
    standstill_look(&c->standstill, clock_mono_ms());
    curl_multi_perform(c->multi, &running);
    deliver(c);
}

size_t http_client_in_flight(const struct http_client *c)
{
    return c->n_in_flight;
}
