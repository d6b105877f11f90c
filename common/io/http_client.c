#include "http_client.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"

enum {
    CONNECTIONS_HOST = 32,
    CONNECTIONS_KEPT = 256,
    STREAMS = 100, /* of HTTP/2, a connection */
    IDLE_CALLS_MAX = 256,
    CONNECT_TIMEOUT_MS = 5000,
    TIMEOUT_MS = 20000,
    UNACKNOWLEDGED_MS = TIMEOUT_MS - CONNECT_TIMEOUT_MS,
    BODY_MAX_BYTES = 1 << 20,
    BODY_KEPT_BYTES = 32 * 1024, /* for the next request */
    HEAD_MAX_BYTES = 64 * 1024,
    LINE_MAX_BYTES = 16 * 1024,
};

/* One request and its answer. Kept after the answer, with its curl handle and its memory, for the
 * next request. */
struct http_call {
    CURL *easy;
    struct curl_slist *headers;
    http_answered_fn *done;
    void *opaque;
    int64_t started_us, send_by_ms;
    bool is_post;
    bool begun;      /* curl was about to send: from here on the request may have arrived */
    bool resend;     /* curl wanted to send it once more and was stopped */
    bool too_large;  /* the answer */
    bool late;       /* for send_by_ms: not sent */
    struct buf head; /* header lines of the answer as they came */
    struct buf body;
    char reason[CURL_ERROR_SIZE];
    struct http_call *prev, *next;
};

struct http_client {
    CURLM *multi;
    struct http_client_options options; /* with copies of the strings */
    struct http_call *in_flight;
    size_t n_in_flight;
    struct http_call *idle; /* a stack */
    size_t n_idle;
    bool closing;
};

static void call_free(struct http_call *call)
{
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    buf_clear(&call->head);
    buf_clear(&call->body);
    free(call);
}

static struct http_call *call_new(void)
{
    struct http_call *call = mem_alloc(1, sizeof(*call));
    buf_init(&call->head, HEAD_MAX_BYTES);
    buf_init(&call->body, BODY_MAX_BYTES);
    call->easy = curl_easy_init();
    if (call->easy)
        return call;
    call_free(call);
    return NULL;
}

/* ---- what curl calls ---------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t n, void *opaque)
{
    struct http_call *call = opaque;
    buf_put(&call->body, (struct str){ data, size * n });
    call->too_large = buf_full(&call->body);
    return call->too_large ? CURL_WRITEFUNC_ERROR : size * n;
}

/* A status line starts over: what came before belonged to an interim answer (1xx). */
static size_t on_header(char *line, size_t size, size_t n, void *opaque)
{
    struct http_call *call = opaque;
    struct str s = { line, size * n };
    if (str_starts(s, "HTTP/"))
        buf_reset(&call->head);
    buf_put(&call->head, s);
    call->too_large = buf_full(&call->head);
    return call->too_large ? CURL_WRITEFUNC_ERROR : s.len;
}

/* Called when the connection is there and the request about to be sent. curl sends a request again
 * by itself when a connection that it had used before dies without an answer; the first one may
 * have arrived, so for a POST that decision is not curl's. */
static int on_ready(void *opaque, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct http_call *call = opaque;
    (void)remote_ip, (void)local_ip, (void)remote_port, (void)local_port;
    if (call->send_by_ms && clock_boot_ms() > call->send_by_ms) {
        call->late = !call->begun;
        return CURL_PREREQFUNC_ABORT;
    }
    call->resend = call->begun && call->is_post;
    call->begun = true;
    return call->resend ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* Where the network was cut and is back, the kernel goes on with what was not acknowledged, for
 * minutes: a request that was given up would arrive behind newer ones. So a connection on which
 * nothing is acknowledged for so long goes (TCP's user timeout, RFC 9293 section 3.8.3), before a
 * request of TIMEOUT_MS that it sent is given up. One that had to wait for its connection, or has
 * less time, may still arrive until UNACKNOWLEDGED_MS after it was sent. */
static int on_socket(void *opaque, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned int ms = UNACKNOWLEDGED_MS;
    (void)opaque, (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

/* ---- the request -------------------------------------------------------------------- */

static bool line_is_clean(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\r' || s.ptr[i] == '\n' || s.ptr[i] == '\0')
            return false;
    return true;
}

static void append(struct http_call *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->headers, line);
    if (longer)
        call->headers = longer;
}

static enum err append_header(struct http_call *call, const struct header *h, struct why *why)
{
    struct buf CLEANUP(buf_clear) line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_put(&line, h->name);
    buf_puts(&line, h->value.len ? ": " : ";"); /* curl's way to say: present, and empty */
    buf_put(&line, h->value);
    if (buf_full(&line) || !h->name.len || !line_is_clean(buf_str(&line)))
        return why_set(why, ERR_REFUSE, "header %.*s cannot be sent", STR_ARG(h->name));
    append(call, line.ptr);
    return OK;
}

static enum err set_headers(struct http_call *call, const struct headers *headers, struct why *why)
{
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    append(
        call,
        "Expect:"); /* no 100-continue: it costs a round trip and servers that ignore it a second */
    if (!headers || !headers_get(headers, "Content-Type").ptr)
        append(call, "Content-Type:"); /* not curl's form-urlencoded */
    for (size_t i = 0; headers && i < headers->n; i++) {
        enum err err = append_header(call, &headers->at[i], why);
        if (err)
            return err;
    }
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return OK;
}

static enum err set_method(struct http_call *call, const struct http_request *r, struct why *why)
{
    static const char *const others[] = { "PUT", "PATCH", "DELETE", "OPTIONS" };
    bool is_get = strcmp(r->method, "GET") == 0, is_head = strcmp(r->method, "HEAD") == 0;
    bool known = is_get || is_head;
    call->is_post = strcmp(r->method, "POST") == 0;
    if (call->is_post || r->body.ptr) {
        curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, r->body.ptr ? r->body.ptr : "");
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    }
    if (is_head)
        curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        known = known || strcmp(r->method, others[i]) == 0;
    if (call->is_post)
        return OK;
    if (!known)
        return why_set(why, ERR_REFUSE, "HTTP method %s is not supported", r->method);
    if (!is_head && (!is_get || r->body.ptr))
        curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, r->method);
    return OK;
}

/* HTTP/2 is for TLS only, and there a request rather waits for a stream on a connection that is
 * being made than opens one more. */
static void set_transport(CURL *easy, const struct http_client_options *options, const char *url)
{
    bool tls = strncasecmp(url, "https:", 6) == 0;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     (long)(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, tls ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (options->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
}

static void set_callbacks(struct http_call *call)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
}

static enum err call_set(struct http_call *call, const struct http_client_options *options,
                         const struct http_request *r, struct why *why)
{
    long timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : TIMEOUT_MS;
    call->begun = call->resend = call->too_large = call->late = false;
    call->reason[0] = '\0';
    buf_reset(&call->head);
    buf_reset(&call->body);
    call->body.max = r->max_body_bytes ? r->max_body_bytes : BODY_MAX_BYTES;

    curl_easy_reset(call->easy);
    set_callbacks(call);
    set_transport(call->easy, options, r->url);
    curl_easy_setopt(call->easy, CURLOPT_USERAGENT, options->user_agent);
    curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     timeout_ms < CONNECT_TIMEOUT_MS ? timeout_ms : CONNECT_TIMEOUT_MS);
    enum err err = set_method(call, r, why);
    if (!err)
        err = set_headers(call, r->headers, why);
    if (err)
        return err;
    CURLcode failed = curl_easy_setopt(call->easy, CURLOPT_URL, r->url);
    call->started_us = clock_mono_us();
    call->send_by_ms = r->send_by_ms;
    return failed ? why_set(why, ERR_RETRY, "%s", curl_easy_strerror(failed)) : OK;
}

/* ---- the answer --------------------------------------------------------------------- */

/* The other side is not who it should be, or cannot be asked: the same again ends the same. */
static bool is_refusal(CURLcode code)
{
    static const CURLcode refusals[] = {
        CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR,         CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_CERTPROBLEM,          CURLE_URL_MALFORMAT,
        CURLE_UNSUPPORTED_PROTOCOL,     CURLE_SSL_PINNEDPUBKEYNOTMATCH,
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (code == refusals[i])
            return true;
    return false;
}

static enum err classify(const struct http_call *call, CURLcode code)
{
    if (code != CURLE_OK && (call->too_large || is_refusal(code)))
        return ERR_REFUSE;
    return code == CURLE_OK ? OK : call->begun ? ERR_UNKNOWN : ERR_RETRY;
}

static const char *reason_of(const struct http_call *call, CURLcode code)
{
    if (call->too_large)
        return "the answer is too large";
    if (call->late)
        return "not sent: it was too late for it";
    if (call->resend)
        return "the connection broke before an answer came";
    return call->reason[0] ? call->reason : curl_easy_strerror(code);
}

/* "Name: value" lines → headers that borrow from them. */
static void parse_head(struct str lines, struct headers *to)
{
    headers_init(to);
    for (struct str line; str_split(&lines, '\n', &line);) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon <= 0)
            continue;
        struct str name = { line.ptr, (size_t)colon };
        if (!headers_put_str(to, name, str_trim(str_from(line, name.len + 1))))
            return;
    }
}

static int version_of(CURL *easy)
{
    long version = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    return version == CURL_HTTP_VERSION_2_0   ? 20
           : version == CURL_HTTP_VERSION_1_1 ? 11
           : version                          ? 10
                                              : 0;
}

/* Reports to the owner how it ended. */
static void call_answer(struct http_call *call, CURLcode code)
{
    struct headers headers;
    long status = 0;
    parse_head(buf_str(&call->head), &headers);
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    struct http_answer answer = {
        .err = classify(call, code),
        .late = call->late,
        .status = (int)status,
        .headers = &headers,
        .body = buf_str(&call->body),
        .micros = clock_mono_us() - call->started_us,
        .http_version = version_of(call->easy),
        .reason = code == CURLE_OK ? "" : reason_of(call, code),
    };
    call->done(call->opaque, &answer);
}

/* ---- the client ------------------------------------------------------------------------ */

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
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS,
                      per_host > CONNECTIONS_KEPT ? per_host : (long)CONNECTIONS_KEPT);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS);
    *ret = c;
    return OK;
}

/* ---- calls, used again and again ---------------------------------------------------- */

static struct http_call *call_take(struct http_client *c)
{
    struct http_call *call = c->idle;
    if (!call)
        return call_new();
    LL_DELETE(c->idle, call);
    c->n_idle--;
    return call;
}

static void call_put_back(struct http_client *c, struct http_call *call)
{
    if (c->n_idle == IDLE_CALLS_MAX) {
        call_free(call);
        return;
    }
    if (call->body.cap > BODY_KEPT_BYTES)
        buf_clear(&call->body);
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
    struct http_call *call = c->closing ? NULL : call_take(c);
    if (!call)
        return why_set(why, ERR_RETRY, "no more requests are taken");
    enum err err = call_set(call, &c->options, request, why);
    CURLMcode failed = err ? CURLM_OK : curl_multi_add_handle(c->multi, call->easy);
    if (failed)
        err = why_set(why, ERR_RETRY, "curl: %s", curl_multi_strerror(failed));
    if (err) {
        call_put_back(c, call);
        return err;
    }
    call->done = done;
    call->opaque = opaque;
    DL_APPEND(c->in_flight, call);
    c->n_in_flight++;
    return OK;
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    struct headers none;
    headers_init(&none);
    struct http_answer given_up = { .err = ERR_UNKNOWN,
                                    .headers = &none,
                                    .body = STR_LIT(""),
                                    .reason = "given up, this process ends" };
    c->closing = true;
    for (struct http_call *call; (call = c->in_flight); call_free(call)) {
        call_end(c, call);
        given_up.micros = clock_mono_us() - call->started_us;
        call->done(call->opaque, &given_up);
    }
    for (struct http_call *call; (call = c->idle); call_free(call))
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
        call_answer(call, code);
        call_put_back(c, call);
        n++;
    }
    return n;
}

size_t http_client_poll(struct http_client *c, struct wake *wake, int timeout_ms)
{
    struct curl_waitfd extra = { .fd = wake ? wake->fd : -1, .events = CURL_WAIT_POLLIN };
    int running;
    curl_multi_perform(c->multi, &running);
    if (deliver(c))
        timeout_ms = 0;
    curl_multi_poll(c->multi, &extra, wake ? 1 : 0, timeout_ms, NULL);
    curl_multi_perform(c->multi, &running);
    deliver(c);
    return c->n_in_flight;
}
