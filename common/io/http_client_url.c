#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/url.h"
#include "http_client.h"

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(u, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

static bool part_is(CURLU *u, CURLUPart part, const char *wanted)
{
    char *text = NULL;
    bool is = curl_url_get(u, part, &text, 0) == CURLUE_OK && strcmp(text, wanted) == 0;
    curl_free(text);
    return is;
}

/* curl gives IPv4 in dotted form whatever was written, IPv6 in brackets. */
static bool host_is_loopback(CURLU *u)
{
    char *host = NULL;
    struct in_addr v4;
    bool is = curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
               (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127));
    curl_free(host);
    return is;
}

static enum err refuse(const char *url, const char *reason, struct why *why)
{
    char shown[300];
    url_shown(shown, sizeof(shown), str_of(url));
    return why_set(why, ERR_REFUSE, "'%s'%s", strchr(shown, '@') ? "…" : shown, reason);
}

static enum err is_ok(CURLU *u, const char *url, bool allow_http, struct why *why)
{
    char reason[128];
    CURLUcode failed = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    if (failed) {
        snprintf(reason, sizeof(reason), " is not a URL: %s", curl_url_strerror(failed));
        return refuse(url, reason, why);
    }
    const char *slashes = strchr(url, ':'); /* curl takes one or three as well */
    if (!slashes || strncmp(slashes, "://", 3) != 0 || slashes[3] == '/')
        return refuse(url, " is not a URL: two slashes follow https:", why);
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
        return why_set(why, ERR_REFUSE, "a URL must not hold a user name or password");
    if (part_is(u, CURLUPART_SCHEME, "https"))
        return OK;
    if (!part_is(u, CURLUPART_SCHEME, "http"))
        return refuse(url, ": only https and http URLs are accepted", why);
    if (!allow_http && !host_is_loopback(u))
        return refuse(url, ": plain http is accepted to loopback hosts only, use https", why);
    return OK;
}

enum err http_url_check(const char *url, bool allow_http, struct why *why)
{
    CURLU *u = curl_url();
    enum err err = u ? is_ok(u, url, allow_http, why) : why_set(why, ERR_RETRY, "out of memory");
    curl_url_cleanup(u);
    return err;
}

void http_encode(struct buf *to, struct str segment)
{
    for (size_t i = 0; i < segment.len; i++) {
        unsigned char c = (unsigned char)segment.ptr[i];
        if (c < 0x80 && (isalnum(c) || str_find(STR_LIT("-._~"), (char)c) >= 0))
            buf_putc(to, (char)c);
        else
            buf_printf(to, "%%%02X", c);
    }
}
