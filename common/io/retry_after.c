#include "retry_after.h"

#include <time.h>

/* RFC 9110 section 5.6.7, the one form that is sent today: "Sun, 06 Nov 1994 08:49:37 GMT". */
static bool http_date_parse(struct str text, int64_t *wall_ms)
{
    char copy[40];
    struct tm tm = { 0 };
    if (!str_copy(copy, sizeof(copy), text))
        return false;
    const char *end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    if (!end || *end)
        return false;
    *wall_ms = (int64_t)timegm(&tm) * 1000;
    return true;
}

bool retry_after(const struct headers *headers, int64_t now_ms, int64_t *until_ms)
{
    struct str text = str_trim(headers_get(headers, "retry-after"));
    uint64_t seconds;
    int64_t at_ms, latest_ms = now_ms + RETRY_AFTER_MAX_S * 1000LL;
    if (!text.ptr)
        return false;
    if (str_to_u64(text, &seconds))
        at_ms = seconds > RETRY_AFTER_MAX_S ? latest_ms : now_ms + (int64_t)seconds * 1000;
    else if (!http_date_parse(text, &at_ms))
        return false;
    *until_ms = at_ms < latest_ms ? at_ms : latest_ms;
    return true;
}
