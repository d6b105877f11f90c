/* What an answer of GitHub's means. PURE. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "../io/retry_after.h"
#include "../model/json_member.h"
#include "github.h"

#define WAIT_MAX_MS (24 * 3600000LL) /* nobody is believed further than that */
#define WAIT_MIN_MS 1000

static int64_t wait_bound(int64_t until_ms, int64_t now_ms)
{
    if (until_ms < now_ms + WAIT_MIN_MS)
        return now_ms + WAIT_MIN_MS;
    return until_ms > now_ms + WAIT_MAX_MS ? now_ms + WAIT_MAX_MS : until_ms;
}

static bool contains_nocase(struct str text, const char *needle)
{
    size_t n = strlen(needle);
    for (size_t i = 0; text.ptr && i + n <= text.len; i++)
        if (strncasecmp(text.ptr + i, needle, n) == 0)
            return true;
    return false;
}

static bool is_limit(int status, const struct headers *headers, struct str body)
{
    if (status == 429)
        return true;
    if (status != 403)
        return false;
    return headers_get(headers, "retry-after").ptr ||
           headers_get_i64(headers, "x-ratelimit-remaining", -1) == 0 ||
           contains_nocase(body, "secondary rate limit") ||
           contains_nocase(body, "abuse detection");
}

/* x-ratelimit-reset as a moment; 0 when absent or absurd. */
static int64_t reset_ms(const struct headers *headers, int64_t now_ms)
{
    int64_t reset_s = headers_get_i64(headers, "x-ratelimit-reset", 0);
    return reset_s > 0 && reset_s <= (now_ms + WAIT_MAX_MS) / 1000 ? reset_s * 1000 : 0;
}

/* The path of Link: <https://api.github.com/…?page=2>; rel="next" (RFC 8288). */
static struct str next_page(struct str link)
{
    struct str part;
    while (str_split(&link, ',', &part)) {
        if (str_find_str(part, STR_LIT("rel=\"next\"")) < 0)
            continue;
        ptrdiff_t open = str_find(part, '<');
        ptrdiff_t close = str_find(part, '>');
        if (open < 0 || close <= open)
            return STR_NONE;
        struct str url = { part.ptr + open + 1, (size_t)(close - open - 1) };
        ptrdiff_t scheme = str_find_str(url, STR_LIT("://"));
        if (scheme < 0)
            return STR_NONE;
        url = str_from(url, (size_t)scheme + 3);
        ptrdiff_t slash = str_find(url, '/');
        return slash < 0 ? STR_NONE : str_from(url, (size_t)slash);
    }
    return STR_NONE;
}

struct str github_page_below(struct str page, const char *api_url)
{
    struct str url = str_of(api_url);
    ptrdiff_t scheme = str_find_str(url, STR_LIT("://"));
    url = str_from(url, scheme < 0 ? 0 : (size_t)scheme + 3);
    ptrdiff_t slash = str_find(url, '/');
    struct str prefix = slash < 0 ? STR_NONE : str_from(url, (size_t)slash);
    bool below = prefix.len && page.len > prefix.len && page.ptr[prefix.len] == '/' &&
                 memcmp(page.ptr, prefix.ptr, prefix.len) == 0;
    return below ? str_from(page, prefix.len) : page;
}

void github_classify(int status, const struct headers *headers, struct str body, int64_t now_ms,
                     struct github_answer *ret)
{
    *ret = (struct github_answer){
        .status = status,
        .etag = headers_get(headers, "etag"),
        .next_page = next_page(headers_get(headers, "link")),
        .budget_left = headers_get_i64(headers, "x-ratelimit-remaining", -1),
        .budget_limit = headers_get_i64(headers, "x-ratelimit-limit", 0),
        .budget_reset_ms = reset_ms(headers, now_ms),
    };
    if ((status >= 200 && status < 300) || status == 304)
        return;
    if (retry_after(headers, now_ms, &ret->wait_until_ms))
        ret->wait_until_ms = wait_bound(ret->wait_until_ms, now_ms);
    else
        ret->wait_until_ms = 0;
    if (is_limit(status, headers, body)) {
        ret->err = ERR_RETRY;
        ret->because = GATE_RATE_LIMIT;
        if (!ret->wait_until_ms && ret->budget_left == 0 && ret->budget_reset_ms)
            ret->wait_until_ms = wait_bound(ret->budget_reset_ms, now_ms);
    } else if (status >= 500 || status == 408)
        ret->err = ERR_UNKNOWN;
    else if (status == 401 || status == 409 || status == 425)
        ret->err = ERR_RETRY;
    else
        ret->err = ERR_REFUSE;
}

static const struct {
    int status;
    const char *name;
    const char *hint; /* may name the repo */
} statuses[] = {
    { 301, "Moved Permanently", "a redirect to another origin, or a second one, is not followed" },
    { 302, "Found", "a redirect that may change the method is not followed" },
    { 307, "Temporary Redirect", "a redirect to another origin, or a second one, is not followed" },
    { 308, "Permanent Redirect", "a redirect to another origin, or a second one, is not followed" },
    { 400, "Bad Request", NULL },
    { 401, "Unauthorized", "are GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY right, and the clock?" },
    { 403, "Forbidden", "does the App have the permission, and is it not suspended?" },
    { 404, "Not Found", "does it exist, and is the App installed there?" },
    { 410, "Gone", NULL },
    { 422, "Unprocessable", NULL },
    { 429, "Too Many Requests", NULL },
    { 500, "Internal Server Error", NULL },
    { 502, "Bad Gateway", NULL },
    { 503, "Service Unavailable", NULL },
    { 504, "Gateway Timeout", NULL },
};

/* GitHub's errors are {"message": "…"}; anything else says nothing. */
static void put_message(struct str body, char *to, size_t size)
{
    to[0] = 0;
    if (!body.ptr || body.len > 65536)
        return;
    json_t *document = json_document(body, NULL);
    const char *message = json_string_value(json_object_get(document, "message"));
    if (message)
        snprintf(to, size, ": %.200s", message);
    for (char *p = to; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    json_decref(document);
}

void github_explain(const struct github_answer *answer, struct str body, struct str repo, char *to,
                    size_t size)
{
    char message[256];
    const char *name = "", *hint = NULL;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i].status == answer->status) {
            name = statuses[i].name;
            hint = answer->because ? NULL : statuses[i].hint;
        }
    put_message(body, message, sizeof(message));
    int n = snprintf(to, size, "%d %s%s", answer->status, name, message);
    if (n < 0 || (size_t)n >= size)
        return;
    to += n;
    size -= (size_t)n;
    if (answer->because)
        snprintf(to, size, " (rate limit)");
    else if (hint && repo.ptr)
        snprintf(to, size, " (%.*s: %s)", STR_ARG(repo), hint);
    else if (hint)
        snprintf(to, size, " (%s)", hint);
}
