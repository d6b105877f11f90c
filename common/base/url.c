#include "url.h"

#include <stdio.h>
#include <string.h>

/* How many bytes there are before the first of these characters. */
static size_t before(struct str s, const char *any)
{
    size_t n = 0;
    while (n < s.len && !strchr(any, s.ptr[n]))
        n++;
    return n;
}

struct str url_shown(char *to, size_t size, struct str url)
{
    url.len = before(url, "?#");
    ptrdiff_t colon = str_find_str(url, STR_LIT("://"));
    struct str scheme = { url.ptr, colon < 0 ? 0 : (size_t)colon + 3 };
    struct str rest = str_from(url, scheme.len);
    for (size_t i = before(rest, "/"); i > 0; i--) /* user information ends at the last @ */
        if (rest.ptr[i - 1] == '@') {
            rest = str_from(rest, i);
            break;
        }
    snprintf(to, size, "%.*s%.*s", STR_ARG(scheme), STR_ARG(rest));
    return str_of(to);
}
