#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../base/url.h"
#include "../io/host_port.h"
#include "../io/http_client.h"
#include "../model/ids.h"
#include "../model/limits.h"
#include "config_private.h"

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit byte_units[] = {
    { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { NULL, 0 }
};
static const struct unit time_units[] = {
    { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 }, { NULL, 0 }
};

static const struct unit no_units[] = { { NULL, 0 } };

/* NULL: no number. */
static const struct unit *const units_of[] = {
    [PROPERTY_NUMBER] = no_units,
    [PROPERTY_BYTES] = byte_units,
    [PROPERTY_SECONDS] = time_units,
    [PROPERTY_ISSUERS] = NULL, /* the last type */
};

static bool read_number(struct str text, const struct unit *unit, int64_t *ret)
{
    int64_t factor = 1, number;
    for (; unit->name; unit++) {
        if (!str_ends(text, unit->name))
            continue;
        factor = unit->factor;
        text.len -= strlen(unit->name);
        break;
    }
    return str_to_i64(text, &number) && !__builtin_mul_overflow(number, factor, ret);
}

static bool is_choice(struct str text, const char *choices)
{
    struct str rest = str_of(choices), choice;
    while (str_split(&rest, '|', &choice))
        if (str_eq(text, choice))
            return true;
    return false;
}

static bool only_has(struct str text, const char *extra)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool common = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!common && !strchr(extra, c))
            return false;
    }
    return true;
}

/* What the one that connects or listens takes, too. */
static bool is_endpoint(struct str text, uint64_t least_port)
{
    char copy[sizeof(struct host_port) + 8];
    struct host_port at;
    uint64_t port;
    return str_copy(copy, sizeof(copy), text) && !host_port_parse(copy, &at, NULL) &&
           str_to_u64(str_of(at.port), &port) && port >= least_port &&
           only_has(str_of(at.host), str_starts(text, "[") ? ".:%" : ".-_");
}

static bool are_endpoints(struct str text)
{
    struct str part;
    bool any = false;
    while (str_split(&text, ',', &part)) {
        if (!is_endpoint(str_trim(part), 1))
            return false;
        any = true;
    }
    return any;
}

/* What is added to it would be lost behind a query. Slashes at its end are dropped. */
static bool is_base_url(const struct property *p, char *url, bool allow_http, struct why *why)
{
    char shown[URL_MAX + 1];
    if (http_url_check(url, allow_http, why))
        return false;
    url_shown(shown, sizeof(shown), str_of(url));
    if (strpbrk(url, "?#")) {
        (void)why_set(why, ERR_REFUSE, "'%s': a base URL has no query and no fragment", shown);
        return false;
    }
    while (str_ends(str_of(url), "/"))
        url[strlen(url) - 1] = '\0';
    struct str path = str_of(strchr(strstr(url, "://") + 3, '/'));
    size_t adds = p->adds ? strlen(p->adds) : 0;
    if (adds && path.len >= adds &&
        str_eq_nocase(str_from(path, path.len - adds), str_of(p->adds))) {
        (void)why_set(why, ERR_REFUSE, "'%s': leave out %s, which is added to it", shown, p->adds);
        return false;
    }
    return true;
}

bool config_parse(const struct property *p, struct value *v, bool allow_http, struct why *why)
{
    struct str text = str_of(v->text);
    switch (p->type) {
    case PROPERTY_TEXT:
        return true;
    case PROPERTY_NUMBER:
    case PROPERTY_BYTES:
    case PROPERTY_SECONDS:
        return read_number(text, units_of[p->type], &v->number) && v->number >= p->min &&
               v->number <= p->max;
    case PROPERTY_BOOL:
        v->number = str_is(text, "1") || str_is(text, "true");
        return v->number || str_is(text, "0") || str_is(text, "false");
    case PROPERTY_URL:
        return is_base_url(p, v->text, allow_http, why);
    case PROPERTY_CHOICE:
        return is_choice(text, p->choices);
    case PROPERTY_LISTEN:
        return is_endpoint(text, 0);
    case PROPERTY_SERVER:
        return is_endpoint(text, 1);
    case PROPERTY_SERVERS:
        return are_endpoints(text);
    case PROPERTY_SOURCE:
        /* A path is read, and complained about, by the router: the file may come later. */
        return str_find_str(text, STR_LIT("://")) < 0 || !http_url_check(v->text, allow_http, why);
    case PROPERTY_FILE:
        return access(v->text, R_OK) == 0;
    case PROPERTY_REPO:
        return repo_valid(text);
    case PROPERTY_PREFIX:
        return text.len <= 100 && only_has(text, "._-");
    case PROPERTY_ISSUERS:
        return true; /* what an issuer is, ingest knows; --check-config asks it, too */
    }
    return false;
}

static void put_url(struct str url, struct buf *to)
{
    char shown[URL_MAX + 1];
    buf_put(to, url_shown(shown, sizeof(shown), url));
}

/* What follows the first '=' or ',' of a query is not known from an issuer or another pair; it is
 * shown only where it begins as a URL does. */
static void put_issuers(struct str text, struct buf *to)
{
    struct str pair, url;
    for (const char *comma = ""; str_split(&text, ',', &pair); comma = ",") {
        buf_puts(to, comma);
        for (const char *equals = ""; str_split(&pair, '=', &url); equals = "=") {
            buf_puts(to, equals);
            if (str_find_str(url, STR_LIT("://")) < 0)
                url = STR_LIT("…");
            put_url(url, to);
        }
    }
}

void config_put_shown(const struct property *p, struct str text, struct buf *to)
{
    if (p->secret)
        buf_puts(to, text.len ? "(set)" : "");
    else if (p->type == PROPERTY_ISSUERS)
        put_issuers(text, to);
    else if (p->type == PROPERTY_URL || str_find_str(text, STR_LIT("://")) >= 0)
        put_url(text, to);
    else
        buf_put(to, text);
}

static void put_quantity(struct buf *to, int64_t n, const struct unit *units)
{
    const struct unit *best = NULL;
    for (; units->name; units++)
        if (n >= units->factor && n % units->factor == 0)
            best = units;
    buf_printf(to, "%" PRId64 "%s", best ? n / best->factor : n, best ? best->name : "");
}

void config_accepted(const struct property *p, struct buf *to)
{
    static const char *const fixed[] = {
        [PROPERTY_TEXT] = "text",
        [PROPERTY_NUMBER] = "a whole number from ",
        [PROPERTY_BYTES] = "bytes, or with KiB, MiB, GiB; ",
        [PROPERTY_SECONDS] = "seconds, or with s, m, h, d; ",
        [PROPERTY_BOOL] = "0, 1, true or false",
        [PROPERTY_URL] = "an https:// URL, or http:// to loopback",
        [PROPERTY_LISTEN] = "host:port, port 0 for a free one",
        [PROPERTY_SERVER] = "host:port",
        [PROPERTY_SERVERS] = "host:port, comma-separated",
        [PROPERTY_SOURCE] = "an https:// URL, http:// to loopback, or the path of a file",
        [PROPERTY_FILE] = "the path of a readable file",
        [PROPERTY_REPO] = REPO_ACCEPTED,
        [PROPERTY_PREFIX] = "up to 100 letters, digits, dots, dashes or underscores",
        [PROPERTY_ISSUERS] =
            "issuer=jwks-url owner owner, comma-separated; https:// or http:// to loopback",
    };
    const struct unit *units = units_of[p->type];
    if (p->type == PROPERTY_CHOICE) {
        struct str rest = str_of(p->choices), choice;
        for (size_t n = 0; str_split(&rest, '|', &choice); n++) {
            if (n)
                buf_puts(to, rest.ptr ? ", " : " or ");
            buf_put(to, choice);
        }
        return;
    }
    buf_puts(to, fixed[p->type]);
    if (units) {
        put_quantity(to, p->min, units);
        buf_puts(to, " to ");
        put_quantity(to, p->max, units);
    }
}
