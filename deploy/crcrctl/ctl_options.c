/* The values of options that several verbs have. */
#include <string.h>

#include "../../common/base/clock.h"
#include "ctl.h"

#define RATE_MAX 10000

int ctl_pr(const struct ctl *ctl, const char *text, int64_t *ret)
{
    uint64_t number;

    if (!str_to_u64(str_of(text), &number) || number < 1 || number > INT32_MAX)
        return ctl_bad(ctl, "--pr", text, "a pull request's number");
    *ret = (int64_t)number;
    return CTL_OK;
}

static bool duration(const char *text, int64_t *ret)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
    size_t len = strlen(text);
    uint64_t number;

    for (size_t i = 0; len > 1 && i < sizeof(units) / sizeof(*units); i++) {
        if (text[len - 1] != units[i].unit || !str_to_u64((struct str){ text, len - 1 }, &number) ||
            number > 1000000)
            continue;
        *ret = (int64_t)number * units[i].ms;
        return true;
    }
    return false;
}

int ctl_time(const struct ctl *ctl, const char *option, const char *text, int64_t *ret)
{
    int64_t ago;

    if (duration(text, &ago)) {
        *ret = clock_wall_ms() - ago;
        return CTL_OK;
    }
    if (clock_parse(str_of(text), ret, NULL) == OK)
        return CTL_OK;
    return ctl_bad(ctl, option, text, "10m, 2h, 3d or 2026-11-21T03:20:00Z");
}

int ctl_duration(const struct ctl *ctl, const char *option, const char *text, int64_t *ret)
{
    if (duration(text, ret) && *ret > 0)
        return CTL_OK;
    return ctl_bad(ctl, option, text, "a time such as 45s, 5m, 2h or 3d");
}

int ctl_rate(const struct ctl *ctl, const char *text, int *ret)
{
    struct str number = str_of(text);
    uint64_t rate;

    if (str_ends(number, "/s"))
        number.len -= 2;
    if (!str_to_u64(number, &rate) || rate < 1 || rate > RATE_MAX)
        return ctl_bad(ctl, "--rate", text, "a number a second, such as 5 or 5/s, at most 10000");
    *ret = (int)rate;
    return CTL_OK;
}
