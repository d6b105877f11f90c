#include "clock.h"

#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_boot_ms(void)
{
    return read_us(CLOCK_BOOTTIME) / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

/* RFC 3339 has four digits for the year. */
static const int64_t FIRST_MS = -62167219200000; /* 0000-01-01T00:00:00.000Z */
static const int64_t LAST_MS = 253402300799999;  /* 9999-12-31T23:59:59.999Z */

/* Over zeros that are there, up to end. */
static void put_digits(char *end, int n)
{
    for (; n > 0; n /= 10)
        *--end = (char)('0' + n % 10);
}

void clock_format(int64_t wall_ms, char to[CLOCK_TEXT_SIZE])
{
    if (wall_ms < FIRST_MS)
        wall_ms = FIRST_MS;
    if (wall_ms > LAST_MS)
        wall_ms = LAST_MS;
    unsigned ms = (unsigned)((wall_ms % 1000 + 1000) % 1000);
    time_t seconds = (time_t)((wall_ms - ms) / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    memcpy(to, "0000-00-00T00:00:00.000Z", sizeof("0000-00-00T00:00:00.000Z"));
    put_digits(to + 4, t.tm_year + 1900);
    put_digits(to + 7, t.tm_mon + 1);
    put_digits(to + 10, t.tm_mday);
    put_digits(to + 13, t.tm_hour);
    put_digits(to + 16, t.tm_min);
    put_digits(to + 19, t.tm_sec);
    put_digits(to + 23, (int)ms);
}

/* Takes exactly n digits off *s. */
static bool take_number(struct str *s, size_t n, int *ret)
{
    uint64_t number;
    if (s->len < n || !str_to_u64((struct str){ s->ptr, n }, &number))
        return false;
    *ret = (int)number;
    *s = str_from(*s, n);
    return true;
}

static bool take_char(struct str *s, const char *accepted)
{
    for (; s->len && *accepted; accepted++) {
        if (s->ptr[0] != *accepted)
            continue;
        *s = str_from(*s, 1);
        return true;
    }
    return false;
}

struct date_time {
    int year, month, day, hour, minute, second, ms;
    int offset_minutes; /* local time minus UTC */
};

/* timegm() carries a 30th of February over into March. */
static bool is_date(int year, int month, int day)
{
    struct tm t = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
    timegm(&t);
    return month >= 1 && month <= 12 && day >= 1 && t.tm_mon == month - 1 && t.tm_mday == day;
}

/* Digits after the first three are dropped: we count in milliseconds. */
static bool take_fraction(struct str *s, int *ms)
{
    int weight = 100, n = 0, digit;
    while (take_number(s, 1, &digit)) {
        *ms += digit * weight;
        weight /= 10;
        n++;
    }
    return n > 0;
}

static bool take_offset(struct str *s, int *minutes)
{
    if (take_char(s, "Zz"))
        return true;
    bool west = s->len && s->ptr[0] == '-';
    int h, m;
    if (!take_char(s, "+-") || !take_number(s, 2, &h) || !take_char(s, ":") ||
        !take_number(s, 2, &m) || h > 23 || m > 59)
        return false;
    *minutes = (west ? -1 : 1) * (h * 60 + m);
    return true;
}

static bool read_date_time(struct str s, struct date_time *t)
{
    *t = (struct date_time){ 0 };
    if (!take_number(&s, 4, &t->year) || !take_char(&s, "-") || !take_number(&s, 2, &t->month) ||
        !take_char(&s, "-") || !take_number(&s, 2, &t->day) || !take_char(&s, "Tt") ||
        !take_number(&s, 2, &t->hour) || !take_char(&s, ":") || !take_number(&s, 2, &t->minute) ||
        !take_char(&s, ":") || !take_number(&s, 2, &t->second))
        return false;
    if (take_char(&s, ".") && !take_fraction(&s, &t->ms))
        return false;
    if (!take_offset(&s, &t->offset_minutes) || s.len)
        return false;
    return is_date(t->year, t->month, t->day) && t->hour <= 23 && t->minute <= 59 &&
           t->second <= 60; /* a leap second counts as the first one of the next minute */
}

/* UTC; no other years can be written in RFC 3339. */
#define YEAR_0_S     (-62167219200)
#define YEAR_10000_S 253402300800

static enum err not_a_time(struct str text, struct why *why)
{
    return why_set(why, ERR_REFUSE, "\"%.*s\" is not an RFC 3339 time such as 2026-11-21T03:20:00Z",
                   text.len < 64 ? (int)text.len : 64, text.ptr ? text.ptr : "");
}

enum err clock_parse(struct str text, int64_t *wall_ms, struct why *why)
{
    struct date_time t;
    if (!read_date_time(text, &t))
        return not_a_time(text, why);
    struct tm utc = { .tm_year = t.year - 1900,
                      .tm_mon = t.month - 1,
                      .tm_mday = t.day,
                      .tm_hour = t.hour,
                      .tm_min = t.minute,
                      .tm_sec = t.second };
    int64_t seconds = (int64_t)timegm(&utc) - t.offset_minutes * 60;
    if (seconds < YEAR_0_S || seconds >= YEAR_10000_S) /* a leap second, an offset */
        return not_a_time(text, why);
    *wall_ms = seconds * 1000 + t.ms;
    return OK;
}
