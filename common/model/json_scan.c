#include "json_scan.h"

#include <stdlib.h>
#include <string.h>

#include "../base/json_text.h"
#include "../base/mem.h"
#include "json_escape.h"
#include "limits.h"

#define MAX_WANTS         64  /* one bit each */
#define JSON_MAX_SEGMENTS 8   /* of a path */
#define FEW_NAMES         128 /* of one object are compared by hash; more are sorted */
#define NO_STRING_END     "a string without its end"

/* Which wants a value can still lead to is a bit set. A value at depth d (the outermost: 0) has
 * passed the first d segments of each want in its set. */
typedef uint64_t want_set;

typedef const unsigned char *position; /* in the text */

struct json_scanner {
    position begin, end; /* of the text */
    const struct json_rules *rules;
    const struct json_want *wants;
    void *opaque;
    struct why *why;
    bool stopped;      /* by a want */
    bool has_nul;      /* an escaped NUL or half of a surrogate pair was met */
    size_t depth;      /* open objects and arrays */
    size_t n_members;  /* so far */
    struct str *names; /* of the members of all open objects, when duplicates are refused */
    size_t n_names, names_cap;
    char *decoded; /* as large as the text: the strings that were written with escapes */
    size_t n_decoded;
    want_set all;
    /* By depth: the wants whose next segment is a member or an element, and those that end here. */
    want_set by_member[JSON_MAX_DEPTH + 1];
    want_set by_element[JSON_MAX_DEPTH + 1];
    want_set ending[JSON_MAX_DEPTH + 1];
    struct str (*segments)[JSON_MAX_SEGMENTS]; /* of each want */
};

/* The functions below take the position where a thing begins and give the one behind it. NULL: the
 * text is refused, or a want stopped the scan. */
static position refuse(struct json_scanner *s, position at, const char *reason)
{
    (void)why_set(s->why, ERR_REFUSE, "JSON, byte %zu: %s%s", (size_t)(at - s->begin), reason,
                  at == s->end ? "; the text ends there" : "");
    return NULL;
}

static bool is_at(const struct json_scanner *s, position p, char c)
{
    return p < s->end && *p == (unsigned char)c;
}

/* ---- paths ---------------------------------------------------------------------------------- */

static void paths_compile(struct json_scanner *s, size_t n)
{
    for (size_t w = 0; w < n; w++) {
        want_set bit = (want_set)1 << w;
        size_t depth = 0;
        for (const char *at = s->wants[w].path; *at && depth < JSON_MAX_SEGMENTS; depth++) {
            size_t len = *at == '[' ? 2 : strcspn(at, ".[");
            s->segments[w][depth] = (struct str){ at, len };
            *(*at == '[' ? &s->by_element[depth] : &s->by_member[depth]) |= bit;
            at += len;
            at += *at == '.';
        }
        s->ending[depth] |= bit;
        s->all |= bit;
    }
}

/* ---- strings -------------------------------------------------------------------------------- */

struct string {
    struct str raw; /* between the quotes */
    bool escaped;   /* it holds escapes */
    bool nul;       /* one of them is NUL or half of a surrogate pair */
};

/* Bytes of the character or the escape at p, which needs a look; 0: refused. */
static size_t character(struct json_scanner *s, position p, struct string *string)
{
    struct str text = { (const char *)p, (size_t)(s->end - p) };
    const char *fault = NULL;
    uint32_t code;
    size_t n;
    if (*p == '\\') {
        n = json_escape_read(text, &code);
        fault = n ? json_escape_fault(code) : "no such escape";
        string->escaped = true;
        string->nul = string->nul || fault;
        s->has_nul = s->has_nul || fault;
    } else {
        n = *p < ' ' ? 0 : json_text_utf8(text);
        if (n == 0)
            fault = *p < ' ' ? "control character" : "invalid UTF-8";
    }
    if (n == 0 || (fault && !s->rules->nul_in_others)) {
        bool cut = n == 0 && *p >= ' ' && str_find(text, '"') < 0; /* within a character */
        (void)refuse(s, cut ? s->end : p, cut ? NO_STRING_END : fault);
        return 0;
    }
    return n;
}

/* Goes on at p, the first byte that is not plain. Inlined it would cost every string the saving of
 * registers. */
__attribute__((noinline)) static position string_rest(struct json_scanner *s, position start,
                                                      position p, struct string *ret)
{
    while (p < s->end && *p != '"') {
        size_t n = character(s, p, ret);
        if (n == 0)
            return NULL;
        p += n;
        p += json_text_plain((struct str){ (const char *)p, (size_t)(s->end - p) });
    }
    if (p == s->end)
        return refuse(s, p, NO_STRING_END);
    ret->raw = (struct str){ (const char *)start, (size_t)(p - start) };
    return p + 1;
}

static position string(struct json_scanner *s, position p, struct string *ret)
{
    const position start = p + 1;
    struct str rest = { (const char *)start, (size_t)(s->end - start) };
    size_t n = json_text_plain(rest);
    *ret = (struct string){ .raw = { rest.ptr, n } };
    p = start + n;
    return is_at(s, p, '"') ? p + 1 : string_rest(s, start, p, ret);
}

/* The text of the string, valid until the scan ends; U+FFFD instead of a NUL. In a name the last
 * three digits of its escape follow: names that differ stay different. */
static struct str string_text(struct json_scanner *s, const struct string *string, bool is_name)
{
    if (!string->escaped)
        return string->raw;
    if (!s->decoded)
        s->decoded = mem_resize(NULL, (size_t)(s->end - s->begin), 1);
    char *start = s->decoded + s->n_decoded, *to = start;
    for (struct str rest = string->raw; rest.len;) {
        ptrdiff_t at = str_find(rest, '\\');
        size_t n = at < 0 ? rest.len : (size_t)at;
        memcpy(to, rest.ptr, n);
        to += n;
        rest = str_from(rest, n);
        if (!rest.len)
            break;
        uint32_t code;
        n = json_escape_read(rest, &code);
        bool nul = json_escape_fault(code);
        to = json_escape_put(to, nul ? 0xFFFD : code);
        if (nul && is_name)
            for (size_t i = 3; i < 6; i++)
                *to++ = rest.ptr[i];
        rest = str_from(rest, n);
    }
    s->n_decoded += (size_t)(to - start);
    return (struct str){ start, (size_t)(to - start) };
}

/* ---- the members' names of an object -------------------------------------------------------- */

static void name_add(struct json_scanner *s, struct str name)
{
    if (s->n_names == s->names_cap) {
        s->names_cap = s->names_cap == 0 ? 64 : s->names_cap * 2;
        s->names = mem_resize(s->names, s->names_cap, sizeof(*s->names));
    }
    s->names[s->n_names++] = name;
}

static int name_order(const void *left, const void *right)
{
    return str_cmp(*(const struct str *)left, *(const struct str *)right);
}

/* One of 256, of the length and both ends. A good one saves comparisons, any will do. */
static unsigned name_hash(struct str name)
{
    uint64_t first = 0, last = 0;
    if (name.len >= sizeof(first)) {
        memcpy(&first, name.ptr, sizeof(first));
        memcpy(&last, name.ptr + name.len - sizeof(last), sizeof(last));
    } else {
        for (size_t i = 0; i < name.len; i++)
            first = first << 8 | (unsigned char)name.ptr[i];
    }
    first = (first ^ name.len) * 0x9E3779B97F4A7C15u;
    return (unsigned)((last ^ first >> 32) * 0x9E3779B97F4A7C15u >> 56);
}

/* A name whose hash was not seen is new. Many are sorted, so no choice of names makes it slow. */
static bool names_differ(struct str *at, size_t n)
{
    if (n > FEW_NAMES) {
        qsort(at, n, sizeof(*at), name_order);
        for (size_t i = 1; i < n; i++)
            if (str_eq(at[i - 1], at[i]))
                return false;
        return true;
    }
    uint64_t seen[256 / 64] = { 0 };
    for (size_t i = 0; i < n; i++) {
        unsigned hash = name_hash(at[i]);
        uint64_t bit = (uint64_t)1 << hash % 64, *word = &seen[hash / 64];
        for (size_t k = 0; (*word & bit) && k < i; k++)
            if (at[i].len == at[k].len && str_eq(at[i], at[k]))
                return false;
        *word |= bit;
    }
    return true;
}

/* ---- the grammar ---------------------------------------------------------------------------- */

/* Most texts have none, and the first comparison says so. */
static position spaces(const struct json_scanner *s, position p)
{
    while (p < s->end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* True: c came next, and *p is behind it. Else *p is behind the spaces. */
static inline bool next_is(const struct json_scanner *s, position *p, char c)
{
    if (!is_at(s, *p, c))
        *p = spaces(s, *p);
    if (!is_at(s, *p, c))
        return false;
    ++*p;
    return true;
}

/* At least one digit. */
static position digits(struct json_scanner *s, position p)
{
    position start = p;
    while (p < s->end && *p >= '0' && *p <= '9')
        p++;
    return p > start ? p : refuse(s, p, "a digit is missing");
}

static position number(struct json_scanner *s, position p)
{
    position start = p += *p == '-';
    p = digits(s, p);
    if (p && *start == '0' && p - start > 1)
        return refuse(s, start, "a number that begins with 0");
    if (p && is_at(s, p, '.'))
        p = digits(s, p + 1);
    if (p && (is_at(s, p, 'e') || is_at(s, p, 'E'))) {
        p++;
        p = digits(s, is_at(s, p, '+') || is_at(s, p, '-') ? p + 1 : p);
    }
    return p;
}

static position literal(struct json_scanner *s, position p, enum json_type *type)
{
    *type = *p == 't' ? JSON_SCAN_TRUE : *p == 'f' ? JSON_SCAN_FALSE : JSON_SCAN_NULL;
    struct str name = *p == 't' ? STR_LIT("true") : *p == 'f' ? STR_LIT("false") : STR_LIT("null");
    size_t left = (size_t)(s->end - p);
    if (memcmp(p, name.ptr, left < name.len ? left : name.len) != 0)
        return refuse(s, p, "no value of JSON");
    return left < name.len ? refuse(s, s->end, "half a value") : p + name.len;
}

/* Tells those who want it what is at p. */
static position want_report(struct json_scanner *s, position p, want_set wants, enum json_type type,
                            struct str text, bool nul, size_t index)
{
    for (; wants; wants &= wants - 1) {
        size_t w = (size_t)__builtin_ctzll(wants);
        if (nul && !s->wants[w].free_text)
            return refuse(s, p,
                          "NUL in a string, or half of a surrogate pair, in a field that is "
                          "read");
        if (!s->wants[w].found(s->opaque, w, type, text, index)) {
            s->stopped = true;
            return NULL;
        }
    }
    return p;
}

static position container(struct json_scanner *s, position p, want_set wants, size_t index);

/* index: of the innermost array around. */
static position value(struct json_scanner *s, position p, want_set wants, size_t index)
{
    struct string text = { .nul = false };
    enum json_type type = JSON_SCAN_NUMBER;
    position end;
    if (p == s->end)
        return refuse(s, p, "a value is missing");
    if (*p == '{' || *p == '[')
        return container(s, p, wants, index);
    if (*p == '"') {
        type = JSON_SCAN_STRING;
        end = string(s, p, &text);
    } else {
        end = *p == '-' || (*p >= '0' && *p <= '9') ? number(s, p) : literal(s, p, &type);
    }
    wants &= s->ending[s->depth];
    if (!end || !wants)
        return end;
    struct str found = { (const char *)p, (size_t)(end - p) };
    if (type == JSON_SCAN_STRING)
        found = string_text(s, &text, false);
    return want_report(s, p, wants, type, found, text.nul, index) ? end : NULL;
}

/* A member up to its value. inner: the wants that a member of this object can lead to; *wants:
 * those of them that this one does. */
static position member(struct json_scanner *s, position p, want_set inner, want_set *wants)
{
    struct string string_of_name;
    if (!is_at(s, p, '"'))
        return refuse(s, p, "the name of a member is missing");
    position at = p;
    p = string(s, p, &string_of_name);
    if (!p)
        return NULL;
    if (s->rules->max_members && ++s->n_members > s->rules->max_members)
        return refuse(s, at, "too many members");
    *wants = 0;
    if (inner || s->rules->reject_duplicates) {
        struct str name = string_text(s, &string_of_name, true);
        for (want_set rest = inner; rest; rest &= rest - 1) {
            const struct str *wanted = &s->segments[__builtin_ctzll(rest)][s->depth - 1];
            if (wanted->len == name.len && str_eq(*wanted, name))
                *wants |= rest & -rest;
        }
        if (inner && !*wants && s->rules->unknown) {
            size_t w = (size_t)__builtin_ctzll(inner); /* any: all of them begin with its path */
            const char *path = s->wants[w].path;
            size_t len = (size_t)(s->segments[w][s->depth - 1].ptr - path);
            s->rules->unknown(s->opaque, (struct str){ path, len }, name);
        }
        if (s->rules->reject_duplicates)
            name_add(s, name);
    }
    return next_is(s, &p, ':') ? spaces(s, p) : refuse(s, p, "a colon is missing");
}

/* An object or an array. index: of the innermost array around. */
static position container(struct json_scanner *s, position p, want_set wants, size_t index)
{
    const position start = p++;
    const bool object = *start == '{';
    const char close = object ? '}' : ']';
    const size_t n_outer = s->n_names;
    const want_set inner = wants & (object ? s->by_member : s->by_element)[s->depth];
    want_set of_value = inner;
    if (s->depth++ == JSON_MAX_DEPTH)
        return refuse(s, start, "nested too deeply");
    if (!next_is(s, &p, close)) {
        size_t element = 0;
        do {
            p = spaces(s, p);
            p = object ? member(s, p, inner, &of_value) : p;
            p = p ? value(s, p, of_value, object ? index : element++) : NULL;
            if (!p)
                return NULL;
        } while (next_is(s, &p, ','));
        if (!next_is(s, &p, close))
            return refuse(s, p,
                          object ? "a comma or the end of an object is missing"
                                 : "a comma or the end of an array is missing");
    }
    if (s->n_names > n_outer && !names_differ(s->names + n_outer, s->n_names - n_outer))
        return refuse(s, p - 1, "a member name twice in this object");
    s->n_names = n_outer;
    wants &= s->ending[--s->depth];
    const struct str text = { (const char *)start, (size_t)(p - start) };
    if (wants && !want_report(s, start, wants, object ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY, text,
                              false, index))
        return NULL;
    return p;
}

static position json_text(struct json_scanner *s)
{
    position p = spaces(s, s->begin);
    if (!is_at(s, p, '{'))
        return refuse(s, p, "not an object");
    p = container(s, p, s->all, 0);
    p = p ? spaces(s, p) : NULL;
    return !p || p == s->end ? p : refuse(s, p, "something behind the object");
}

enum err json_scan(struct str text, const struct json_rules *rules, const struct json_want *wants,
                   size_t n, void *opaque, struct why *why)
{
    if (n > MAX_WANTS)
        return why_set(why, ERR_STOP, "more than %d JSON paths in one scan", MAX_WANTS);
    struct str segments[MAX_WANTS][JSON_MAX_SEGMENTS]; /* paths_compile sets what is read */
    position begin = (position)(text.ptr ? text.ptr : "");
    struct json_scanner s = { .begin = begin,
                              .end = begin + text.len,
                              .rules = rules,
                              .wants = wants,
                              .opaque = opaque,
                              .why = why,
                              .segments = segments };
    paths_compile(&s, n);
    position end = json_text(&s);
    free(s.names);
    free(s.decoded);
    if (!end && !s.stopped)
        return ERR_REFUSE;
    if (rules->has_nul)
        *rules->has_nul = s.has_nul;
    return OK;
}

void json_quote(struct buf *to, struct str s)
{
    json_text_put(to, !s.ptr ? STR_LIT("") : s);
}
