#include "json_bytes.h"

#include <string.h>

#include "../base/json_text.h"
#include "json_scan.h"

/* Reads the four hex digits of a \u escape at p. */
static bool hex4(const unsigned char *p, size_t left, unsigned *ret)
{
    if (left < 6 || p[0] != '\\' || p[1] != 'u')
        return false;
    unsigned value = 0;
    for (size_t i = 2; i < 6; i++) {
        unsigned char c = p[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (c | 0x20u) - 'a' + 10;
        else
            return false;
        value = value << 4 | digit;
    }
    *ret = value;
    return true;
}

/* Bytes of the escape at p; a pair of surrogates is one. *reason when it is NUL, or half a pair,
 * which has 6. Wrong letters and digits are left to the parser. */
static size_t escape_length(const unsigned char *p, size_t left, const char **reason)
{
    unsigned unit, low;
    if (!hex4(p, left, &unit))
        return left < 2 ? 1 : 2;
    if (unit == 0)
        *reason = JSON_NUL_REASON;
    if (unit < 0xD800 || unit > 0xDFFF)
        return 6;
    if (unit <= 0xDBFF && hex4(p + 6, left - 6, &low) && low >= 0xDC00 && low <= 0xDFFF)
        return 12;
    *reason = "half of a surrogate pair";
    return 6;
}

/* Bytes at p that belong together; 0 and a reason when they are refused. *reason is set also by an
 * escape that may be refused. */
static size_t piece_length(const unsigned char *p, size_t left, const char **reason)
{
    if (*p == '\\')
        return escape_length(p, left, reason);
    if (*p == '\0' || (*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r')) {
        *reason = "control character";
        return 0;
    }
    if (*p < 0x80)
        return 1;
    size_t n = json_text_utf8((struct str){ (const char *)p, left });
    if (n == 0)
        *reason = "invalid UTF-8";
    return n;
}

/* True when none of the eight bytes needs a look: all are ASCII, none is a control character or a
 * backslash. (x - 0x20…) & ~x has the top bit of each byte below 0x20 set; a borrow from a lower
 * byte can only set too many, which costs a look. */
static bool word_is_plain(const unsigned char *p)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    uint64_t no_backslash = x ^ (ones * '\\');
    return ((x | ((x - ones * 0x20) & ~x) | ((no_backslash - ones) & ~no_backslash)) & tops) == 0;
}

enum err json_bytes_check(struct str text, bool escaped_nul, bool *has_nul, struct why *why)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t i = 0;
    while (i < text.len) {
        if (text.len - i >= 8 && word_is_plain(p + i)) {
            i += 8;
            continue;
        }
        const char *reason = NULL;
        size_t n = piece_length(p + i, text.len - i, &reason);
        if (n == 0 || (reason && !escaped_nul))
            return why_set(why, ERR_REFUSE, "JSON, byte %zu: %s", i, reason);
        *has_nul = *has_nul || reason;
        i += n;
    }
    return OK;
}

/* One past the closing quote of the string that begins at i. *is_name: it is a member's. */
static size_t string_end(struct str text, size_t i, bool *is_name)
{
    for (i++; i < text.len && text.ptr[i] != '"'; i++)
        i += text.ptr[i] == '\\';
    size_t end = i + 1;
    for (i++; i < text.len && memchr(" \t\r\n", text.ptr[i], 4);)
        i++;
    *is_name = i < text.len && text.ptr[i] == ':';
    return end;
}

void json_replace_nul(struct buf *to, struct str text, struct str with)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t kept = 0, end = 0; /* end: of the string that was met last */
    bool is_name = false;
    for (size_t i = 0, n; i < text.len; i += n) {
        const char *reason = NULL;
        n = p[i] == '\\' ? escape_length(p + i, text.len - i, &reason) : 1;
        if (p[i] == '"' && i >= end)
            end = string_end(text, i, &is_name);
        if (!reason)
            continue;
        buf_put(to, (struct str){ text.ptr + kept, i - kept });
        buf_put(to, is_name ? STR_LIT("\xEF\xBF\xBD") : with);
        kept = is_name ? i + 3 : i + n;
    }
    buf_put(to, str_from(text, kept));
}
