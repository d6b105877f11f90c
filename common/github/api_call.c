#include "api_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/mem.h"

#define API_VERSION                                                                                \
    "2022-11-28" /* https://docs.github.com/en/rest/about-the-rest-api/api-versions */
#define MIME_JSON         "application/vnd.github+json"
#define AUTHORIZATION_MAX 16384

struct api_call {
    struct http_client *client;
    struct github_request request; /* what it points to is the caller's, but for path */
    struct buf url;
    const char *api_url; /* borrowed of github, which goes only when no answer is read any more */
    char *authorization;
    bool redirected;
    int64_t sent_ms;
    github_answered_fn *done;
    void *opaque;
};

static void api_call_free(struct api_call *c)
{
    buf_clear(&c->url);
    mem_free_secret(c->authorization);
    free(c);
}

static http_answered_fn answered;

static enum err send_request(struct api_call *c, struct why *why)
{
    const struct github_request *r = &c->request;
    struct headers headers;
    headers_init(&headers);
    headers_put(&headers, "Authorization", str_of(c->authorization));
    headers_put(&headers, "Accept", str_of(r->accept ? r->accept : MIME_JSON));
    headers_put(&headers, "X-GitHub-Api-Version", STR_LIT(API_VERSION));
    if (r->body.ptr)
        headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    if (r->etag.len)
        headers_put(&headers, "If-None-Match", r->etag);
    const struct http_request request = {
        .method = r->method,
        .url = buf_str(&c->url).ptr,
        .headers = &headers,
        .body = r->body,
        .max_body_bytes = r->max_body_bytes,
        .send_by_ms = r->send_by_ms,
    };
    c->sent_ms = clock_wall_ms();
    return http_client_start(c->client, &request, answered, c, why);
}

/* "https://host:port" of a URL. */
static struct str origin(struct str url)
{
    ptrdiff_t scheme = str_find_str(url, STR_LIT("://"));
    if (scheme < 0)
        return STR_NONE;
    ptrdiff_t slash = str_find(str_from(url, (size_t)scheme + 3), '/');
    return (struct str){ url.ptr, slash < 0 ? url.len : (size_t)(scheme + 3 + slash) };
}

/* Follows 301, 307 and 308 once, to the same origin only: the token must not go anywhere else. */
static bool redirect(struct api_call *c, const struct http_answer *http)
{
    if (c->redirected || (http->status != 301 && http->status != 307 && http->status != 308))
        return false;
    struct str location = headers_get(http->headers, "location");
    struct str here = origin(buf_str(&c->url));
    struct buf target;
    buf_init(&target, 4096);
    if (location.len > 1 && location.ptr[0] == '/' && location.ptr[1] != '/')
        buf_put(&target, here);
    else if (!location.ptr || !str_eq_nocase(origin(location), here))
        return false;
    buf_put(&target, location);
    struct why ignored;
    if (buf_full(&target) || /* cut off, it would be another URL */
        http_url_check(buf_str(&target).ptr, true, &ignored)) {
        buf_clear(&target);
        return false;
    }
    buf_clear(&c->url);
    c->url = target;
    c->redirected = true;
    return !send_request(c, &ignored);
}

/* No byte of the request was sent. A certificate that is refused today (expired, a wrong
 * CRCR_CA_FILE) is mended tomorrow: nothing is given up for it. */
static bool is_unsent(const struct http_answer *http)
{
    return http->err == ERR_RETRY || (http->err == ERR_REFUSE && !http->status);
}

static void answered(void *opaque, const struct http_answer *http)
{
    struct api_call *c = opaque;
    char reason[512] = "";
    struct github_answer answer = { .err = is_unsent(http) ? ERR_RETRY : http->err,
                                    .budget_left = -1,
                                    .reason = http->reason ? http->reason : "no answer" };
    /* What a write did is in its status; a body too large to be read changes nothing of that. */
    bool is_read = !http->err || (http->err == ERR_REFUSE && http->status &&
                                  strcmp(c->request.method, "GET") != 0);
    if (is_read) {
        if (redirect(c, http))
            return;
        /* GitHub names a moment by the wall clock. From here on it is a length of time: a clock
         * that is set meanwhile, ours or that of the machine we move to, must neither hold us up
         * nor hurry us. */
        int64_t wall_ms = clock_wall_ms(), to_mono_ms = clock_mono_ms() - wall_ms;
        github_classify(http->status, http->headers, http->body, wall_ms, &answer);
        answer.next_page = github_page_below(answer.next_page, c->api_url);
        if (answer.wait_until_ms)
            answer.wait_until_ms += to_mono_ms;
        if (answer.budget_reset_ms)
            answer.budget_reset_ms += to_mono_ms;
        answer.body = http->body;
        if (answer.err) {
            github_explain(&answer, http->body, c->request.repo, reason, sizeof(reason));
            answer.reason = reason;
        }
    }
    answer.sent_ms = is_unsent(http) ? 0 : c->sent_ms;
    answer.micros = http->micros;
    if (http->late) { /* it waits for nothing but its turn, and has spent no attempt */
        answer.because = GATE_IN_FLIGHT;
        answer.wait_until_ms = clock_mono_ms();
    }
    c->done(c->opaque, &answer);
    api_call_free(c);
}

enum err api_call_start(const struct api *api, const struct github_request *request,
                        const char *token, github_answered_fn *done, void *opaque, struct why *why)
{
    struct api_call *c = mem_alloc(1, sizeof(*c));
    struct buf text;
    buf_init(&text, AUTHORIZATION_MAX);
    buf_puts(&text, "Bearer ");
    buf_puts(&text, token);
    *c = (struct api_call){
        .client = api->client,
        .request = *request,
        .api_url = api->url,
        .authorization = buf_take(&text, NULL),
        .done = done,
        .opaque = opaque,
    };
    buf_init(&c->url, 4096);
    buf_puts(&c->url, api->url);
    buf_puts(&c->url, request->path);
    enum err err = send_request(c, why);
    if (err)
        api_call_free(c);
    return err;
}
