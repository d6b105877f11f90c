#include <curl/curl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/standstill.h"
#include "http_client_inner.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    TIMEOUT_MS = 20000,
    BODY_MAX_BYTES = 1 << 20,
    BODY_KEPT_BYTES = 32 * 1024, /* for the next request */
    HEAD_MAX_BYTES = 64 * 1024,
    LINE_MAX_BYTES = 16 * 1024,
};

struct http_call *http_call_new(void)
{
    struct http_call *call = mem_alloc(1, sizeof(*call));
    buf_init(&call->head, HEAD_MAX_BYTES);
    buf_init(&call->body, BODY_MAX_BYTES);
    call->easy = curl_easy_init();
    if (call->easy)
        return call;
    http_call_free(call);
    return NULL;
}

void http_call_free(struct http_call *call)
{
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    buf_clear(&call->head);
    buf_clear(&call->body);
    free(call);
}

void http_call_rest(struct http_call *call)
{
    if (call->body.cap > BODY_KEPT_BYTES)
        buf_clear(&call->body);
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
    call->old =
        call->standstill && standstill_since(call->standstill, call->known_ms, clock_mono_ms());
    if (call->old)
        return CURL_PREREQFUNC_ABORT;
    call->resend = call->begun && call->is_post;
    call->begun = true;
    return call->resend ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* Where the network was cut and is whole again, the kernel goes on with what was not acknowledged,
 * for minutes: a request that was given up would arrive behind newer ones. So a connection on which
 * nothing is acknowledged for as long as a request may take goes, and what it has with it (TCP's
 * user timeout, RFC 9293 section 3.8.3); HTTP/2 keeps it open otherwise when a stream is given up.
 */
static int on_socket(void *opaque, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned int ms = TIMEOUT_MS;
    (void)opaque, (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

/* And what is not acknowledged by now is not sent any more. */
static int on_close(void *opaque, curl_socket_t fd)
{
    const struct linger at_once = { .l_onoff = 1 };
    int unsent = 0;
    (void)opaque;
    if (!ioctl(fd, SIOCOUTQ, &unsent) && unsent > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return close(fd);
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
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
}

enum err http_call_set(struct http_call *call, const struct http_client_options *options,
                       const struct http_request *r, struct why *why)
{
    long timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : TIMEOUT_MS;
    call->begun = call->resend = call->too_large = call->old = false;
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
    call->known_ms = r->known_ms ? r->known_ms : call->started_us / 1000;
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
    if (code == CURLE_OK)
        return OK;
    if (call->too_large || is_refusal(code))
        return ERR_REFUSE;
    return call->begun ? ERR_UNKNOWN : ERR_RETRY;
}

static bool is_stale(const struct http_call *call)
{
    return call->old && !call->begun;
}

static const char *reason_of(const struct http_call *call, CURLcode code)
{
    if (call->too_large)
        return "the answer is too large";
    if (is_stale(call))
        return "not sent: this process stood still meanwhile";
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
    switch (version) {
    case CURL_HTTP_VERSION_1_0:
        return 10;
    case CURL_HTTP_VERSION_1_1:
        return 11;
    case CURL_HTTP_VERSION_2_0:
        return 20;
    default:
        return 0;
    }
}

void http_call_answer(struct http_call *call, int code)
{
    struct headers headers;
    long status = 0;
    parse_head(buf_str(&call->head), &headers);
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    struct http_answer answer = {
        .err = classify(call, code),
        .stale = is_stale(call),
        .status = (int)status,
        .headers = &headers,
        .body = buf_str(&call->body),
        .micros = clock_mono_us() - call->started_us,
        .http_version = version_of(call->easy),
        .reason = code == CURLE_OK ? "" : reason_of(call, code),
    };
    call->done(call->opaque, &answer);
}

void http_call_give_up(struct http_call *call)
{
    struct headers none;
    headers_init(&none);
    struct http_answer answer = {
        .err = ERR_UNKNOWN,
        .headers = &none,
        .body = STR_LIT(""),
        .micros = clock_mono_us() - call->started_us,
        .reason = "given up, this process ends",
    };
    call->done(call->opaque, &answer);
}
