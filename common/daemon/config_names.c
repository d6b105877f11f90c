#include <string.h>

#include "config_private.h"

/* …_PORT_<n>_TCP, …_PORT_<n>_TCP_ADDR and so on. */
static bool has_numbered_port(struct str name)
{
    ptrdiff_t at = str_find_str(name, STR_LIT("_PORT_"));
    if (at < 0)
        return false;
    struct str rest = str_from(name, (size_t)at + strlen("_PORT_")), number;
    uint64_t n;
    return str_split(&rest, '_', &number) && str_to_u64(number, &n) && rest.len > 0;
}

bool config_is_service_link(struct str name, struct str value)
{
    if (str_ends(name, "_SERVICE_HOST") || str_ends(name, "_SERVICE_PORT") ||
        str_find_str(name, STR_LIT("_SERVICE_PORT_")) >= 0 || has_numbered_port(name))
        return true;
    /* Kubernetes writes an address here; a person who means CRCR_LISTEN writes a number. */
    return str_ends(name, "_PORT") && str_find_str(value, STR_LIT("://")) >= 0;
}

enum { NAME_MAX_LEN = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: single changes, and two neighbours swapped, count one. */
static size_t distance(struct str a, struct str b)
{
    size_t rows[3][NAME_MAX_LEN + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t k = 0; k <= b.len; k++)
        above[k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            size_t change = above[k - 1] + (a.ptr[i - 1] != b.ptr[k - 1]);
            row[k] = least(change, least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a.ptr[i - 1] == b.ptr[k - 2] && a.ptr[i - 2] == b.ptr[k - 1])
                row[k] = least(row[k], before[k - 2] + 1);
        }
        size_t *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b.len];
}

const char *config_suggest(struct str name)
{
    const char *best = NULL;
    size_t nearest = 4; /* three slips at most, and fewer in short names */
    if (name.len > NAME_MAX_LEN)
        return NULL;
    for (size_t i = 0; i < config_n_properties; i++) {
        struct str known = str_of(config_properties[i].name);
        if (known.len > NAME_MAX_LEN)
            continue;
        size_t d = distance(name, known);
        if (d < nearest && d * 4 <= known.len) {
            nearest = d;
            best = config_properties[i].name;
        }
    }
    return best;
}

const char *config_removed(struct str name)
{
    static const struct {
        const char *name, *why;
    } removed[] = {
        { "CRCR_BUDGET_KEPT_PERCENT", "what each class of calls leaves to others is fixed now" },
        { "CRCR_BUDGET_MINUTE", "it was for tests only" },
    };
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
        if (str_is(name, removed[i].name))
            return removed[i].why;
    return NULL;
}
