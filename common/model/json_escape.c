#include "json_escape.h"

#include <string.h>

#include "../base/buf.h"
#include "json_scan.h"

/* Reads \u and four hex digits. */
static bool hex4(struct str text, uint32_t *ret)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    if (text.len < 6 || text.ptr[0] != '\\' || text.ptr[1] != 'u')
        return false;
    uint32_t value = 0;
    for (size_t i = 2; i < 6; i++) {
        const char *digit = memchr(digits, text.ptr[i], sizeof(digits) - 1);
        if (!digit)
            return false;
        value = value << 4 | (uint32_t)(digit - digits - (digit - digits > 15 ? 6 : 0));
    }
    *ret = value;
    return true;
}

static bool is_half(uint32_t code)
{
    return code >= 0xD800 && code <= 0xDFFF;
}

size_t json_escape_read(struct str text, uint32_t *code)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = text.len > 1 ? memchr(letters, text.ptr[1], sizeof(letters) - 1) : NULL;
    uint32_t low;
    if (letter) {
        *code = (unsigned char)meanings[letter - letters];
        return 2;
    }
    if (!hex4(text, code))
        return 0;
    if (!is_half(*code) || *code >= 0xDC00 || !hex4(str_from(text, 6), &low) || low < 0xDC00 ||
        !is_half(low))
        return 6;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return 12;
}

const char *json_escape_fault(uint32_t code)
{
    return code == 0 ? "NUL in a string" : is_half(code) ? "half of a surrogate pair" : NULL;
}

char *json_escape_put(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes after the first */
    *to++ = (char)((0xFF00u >> (more + 1)) | (code >> (6 * more)));
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return to;
}

/* One past the closing quote of the string that begins at i. *is_name: it is a member's. */
static size_t string_end(struct str text, size_t i, bool *is_name)
{
    for (i++; i < text.len && text.ptr[i] != '"'; i++)
        i += text.ptr[i] == '\\';
    size_t end = i + 1;
    for (i++; i < text.len && text.ptr[i] && strchr(" \t\r\n", text.ptr[i]);)
        i++;
    *is_name = i < text.len && text.ptr[i] == ':';
    return end;
}

void json_replace_nul(struct buf *to, struct str text, struct str with)
{
    size_t kept = 0, end = 0; /* end: of the string that was met last */
    bool is_name = false;
    for (size_t i = 0, n; i < text.len; i += n) {
        uint32_t code;
        n = 1;
        if (text.ptr[i] == '"' && i >= end)
            end = string_end(text, i, &is_name);
        if (text.ptr[i] != '\\')
            continue;
        n = json_escape_read(str_from(text, i), &code);
        if (n == 0 || !json_escape_fault(code)) {
            n = n ? n : 2;
            continue;
        }
        buf_put(to, (struct str){ text.ptr + kept, i - kept });
        buf_put(to, is_name ? STR_LIT("\xEF\xBF\xBD") : with);
        kept = is_name ? i + 3 : i + n;
    }
    buf_put(to, str_from(text, kept));
}
