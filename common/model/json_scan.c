#include "json_scan.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "../base/json_text.h"
#include "../base/mem.h"
#include "json_bytes.h"
#include "limits.h"

#define MAX_WANTS         64 /* one bit each */
#define JSON_MAX_SEGMENTS 8  /* of a path */
#define FEW_NAMES         16 /* are faster compared with each other than sorted */

/* Which wants a value can still lead to is a bit set. A value at depth d (the outermost: 0) has
 * passed the first d segments of each want in its set. */
typedef uint64_t want_set;

struct frame { /* one open object or array */
    want_set wants;
    want_set below; /* of the member or element that comes next */
    size_t start;   /* byte offset of the opening bracket */
    size_t index;   /* of the next element; objects: of the innermost array around */
    size_t names;   /* objects: where its member names begin */
    bool is_array;
};

struct name_copy {
    struct name_copy *next;
    char text[];
};

struct scan {
    struct str input; /* of json_scan */
    struct str text;  /* what yajl reads: the same, or with NUL for halves of surrogate pairs */
    const struct json_rules *rules;
    const struct json_want *wants;
    void *opaque;
    struct why *why;
    yajl_handle parser;
    struct str *names; /* the members of all open objects, when duplicates are refused */
    size_t n_names, names_cap;
    struct name_copy *name_copies; /* of names that were written with escapes */
    bool refused, stopped;
    size_t depth;     /* open brackets */
    size_t n_members; /* so far */
    size_t end;       /* where the outermost object closed; 0: not yet */
    struct frame frames[JSON_MAX_DEPTH];
    struct str segments[MAX_WANTS][JSON_MAX_SEGMENTS];
    /* By depth: the wants whose next segment is a member or an element, and those that end here. */
    want_set by_member[JSON_MAX_DEPTH + 1];
    want_set by_element[JSON_MAX_DEPTH + 1];
    want_set ending[JSON_MAX_DEPTH + 1];
    want_set all;
    struct buf replaced; /* a string that is free text, without its NUL */
};

/* ---- paths ---------------------------------------------------------------------------------- */

/* Takes the first segment off *path: "[]", or a member name. */
static struct str segment_next(struct str *path)
{
    size_t n = 0;
    if (str_starts(*path, "[]")) {
        n = 2;
    } else {
        while (n < path->len && path->ptr[n] != '.' && path->ptr[n] != '[')
            n++;
    }
    struct str segment = { path->ptr, n };
    *path = str_from(*path, n);
    if (str_starts(*path, "."))
        *path = str_from(*path, 1);
    return segment;
}

static void paths_compile(struct scan *s, size_t n)
{
    for (size_t w = 0; w < n; w++) {
        struct str path = str_of(s->wants[w].path);
        want_set bit = (want_set)1 << w;
        size_t depth = 0;
        for (; path.len > 0 && depth < JSON_MAX_SEGMENTS; depth++) {
            struct str segment = segment_next(&path);
            s->segments[w][depth] = segment;
            *(str_is(segment, "[]") ? &s->by_element[depth] : &s->by_member[depth]) |= bit;
        }
        s->ending[depth] |= bit;
        s->all |= bit;
    }
}

/* ---- member names of open objects ------------------------------------------------------------ */

/* Any total order will do; lengths mostly decide. */
static int name_order(const void *left, const void *right)
{
    const struct str *a = left, *b = right;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->ptr, b->ptr, a->len);
}

/* Many are sorted, so no choice of names makes it slow. */
static bool names_differ(struct str *at, size_t n)
{
    if (n <= FEW_NAMES) {
        for (size_t i = 1; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (name_order(&at[i], &at[k]) == 0)
                    return false;
        return true;
    }
    qsort(at, n, sizeof(*at), name_order);
    for (size_t i = 1; i < n; i++)
        if (name_order(&at[i - 1], &at[i]) == 0)
            return false;
    return true;
}

/* The name is kept by pointer when it lies in the text, and copied otherwise. */
static void name_add(struct scan *s, struct str name)
{
    if (s->n_names == s->names_cap) {
        s->names_cap = s->names_cap == 0 ? 64 : s->names_cap * 2;
        s->names = mem_resize(s->names, s->names_cap, sizeof(*s->names));
    }
    uintptr_t at = (uintptr_t)name.ptr, start = (uintptr_t)s->text.ptr;
    if (at < start || at >= start + s->text.len) {
        struct name_copy *copy = mem_resize(NULL, 1, sizeof(*copy) + name.len);
        memcpy(copy->text, name.ptr, name.len);
        copy->next = s->name_copies;
        s->name_copies = copy;
        name.ptr = copy->text;
    }
    s->names[s->n_names++] = name;
}

static void names_free(struct scan *s)
{
    free(s->names);
    while (s->name_copies) {
        struct name_copy *next = s->name_copies->next;
        free(s->name_copies);
        s->name_copies = next;
    }
}

/* ---- what yajl calls ------------------------------------------------------------------------ */

static int scan_refuse(struct scan *s, const char *reason)
{
    s->refused = true;
    (void)why_set(s->why, ERR_REFUSE, "JSON, byte %zu: %s", yajl_get_bytes_consumed(s->parser),
                  reason);
    return 0;
}

static struct frame *scan_top(struct scan *s)
{
    return s->depth > 0 ? &s->frames[s->depth - 1] : NULL;
}

/* What the value that comes now leads to, and its place in the innermost array. */
static want_set scan_value(struct scan *s, size_t *index)
{
    struct frame *top = scan_top(s);
    if (!top) {
        *index = 0;
        return s->all;
    }
    *index = top->is_array ? top->index++ : top->index;
    return top->below;
}

static struct str without_nul(struct scan *s, struct str text)
{
    buf_clear(&s->replaced);
    buf_init(&s->replaced, 3 * text.len);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i])
            buf_putc(&s->replaced, text.ptr[i]);
        else
            buf_puts(&s->replaced, "\xEF\xBF\xBD");
    return buf_str(&s->replaced);
}

static int scan_report(struct scan *s, want_set wants, size_t depth, enum json_type type,
                       struct str text, size_t index)
{
    wants &= s->ending[depth];
    bool nul = wants && type == JSON_SCAN_STRING && memchr(text.ptr, '\0', text.len);
    for (; wants != 0; wants &= wants - 1) {
        size_t w = (size_t)__builtin_ctzll(wants);
        if (nul && !s->wants[w].free_text)
            return scan_refuse(s, JSON_NUL_REASON
                               ", or half of a surrogate pair, in a field that is read");
        if (!s->wants[w].found(s->opaque, w, type, nul ? without_nul(s, text) : text, index)) {
            s->stopped = true;
            return 0;
        }
    }
    return 1;
}

static int scan_scalar(struct scan *s, enum json_type type, struct str text)
{
    if (s->depth == 0)
        return scan_refuse(s, "not an object");
    size_t index;
    want_set wants = scan_value(s, &index);
    return scan_report(s, wants, s->depth, type, text, index);
}

static int on_null(void *opaque)
{
    return scan_scalar(opaque, JSON_SCAN_NULL, STR_LIT("null"));
}

static int on_boolean(void *opaque, int value)
{
    return value ? scan_scalar(opaque, JSON_SCAN_TRUE, STR_LIT("true"))
                 : scan_scalar(opaque, JSON_SCAN_FALSE, STR_LIT("false"));
}

static int on_number(void *opaque, const char *text, size_t len)
{
    return scan_scalar(opaque, JSON_SCAN_NUMBER, (struct str){ text, len });
}

static int on_string(void *opaque, const unsigned char *text, size_t len)
{
    return scan_scalar(opaque, JSON_SCAN_STRING, (struct str){ (const char *)text, len });
}

static int scan_open(struct scan *s, bool is_array)
{
    if (s->depth == 0 && is_array)
        return scan_refuse(s, "not an object");
    if (s->depth == JSON_MAX_DEPTH)
        return scan_refuse(s, "nested too deeply");
    size_t index;
    want_set wants = scan_value(s, &index);
    struct frame *frame = &s->frames[s->depth];
    *frame = (struct frame){ .wants = wants,
                             .below = is_array ? wants & s->by_element[s->depth] : 0,
                             .start = yajl_get_bytes_consumed(s->parser) - 1,
                             .index = is_array ? 0 : index,
                             .names = s->n_names,
                             .is_array = is_array };
    s->depth++;
    return 1;
}

static int on_end(void *opaque)
{
    struct scan *s = opaque;
    struct frame *frame = scan_top(s);
    size_t n_names = s->n_names - frame->names;
    s->n_names = frame->names;
    if (n_names > 1 && !names_differ(s->names + frame->names, n_names))
        return scan_refuse(s, "a member name twice in this object");
    s->depth--;
    if (s->depth == 0)
        s->end = yajl_get_bytes_consumed(s->parser);
    if ((frame->wants & s->ending[s->depth]) == 0)
        return 1;
    size_t end = yajl_get_bytes_consumed(s->parser);
    struct frame *around = scan_top(s);
    size_t index = !around ? 0 : around->is_array ? around->index - 1 : around->index;
    return scan_report(s, frame->wants, s->depth,
                       frame->is_array ? JSON_SCAN_ARRAY : JSON_SCAN_OBJECT,
                       (struct str){ s->input.ptr + frame->start, end - frame->start }, index);
}

static int on_start_map(void *opaque)
{
    return scan_open(opaque, false);
}

static int on_map_key(void *opaque, const unsigned char *text, size_t len)
{
    struct scan *s = opaque;
    struct str name = { (const char *)text, len };
    struct frame *frame = scan_top(s);
    if (s->rules->max_members && ++s->n_members > s->rules->max_members)
        return scan_refuse(s, "too many members");
    size_t depth = s->depth - 1;
    frame->below = 0;
    for (want_set left = frame->wants & s->by_member[depth]; left != 0; left &= left - 1) {
        size_t w = (size_t)__builtin_ctzll(left);
        if (str_eq(s->segments[w][depth], name))
            frame->below |= left & -left;
    }
    if (s->rules->reject_duplicates)
        name_add(s, name);
    return 1;
}

static int on_start_array(void *opaque)
{
    return scan_open(opaque, true);
}

/* ---- the scan ------------------------------------------------------------------------------- */

/* yajl does not look whether it got memory. */
static void *yajl_take(void *opaque, size_t size)
{
    (void)opaque;
    return mem_resize(NULL, 1, size);
}

static void *yajl_resize(void *opaque, void *block, size_t size)
{
    (void)opaque;
    return mem_resize(block, 1, size);
}

static void yajl_give_back(void *opaque, void *block)
{
    (void)opaque;
    free(block);
}

static enum err scan_fault(struct scan *s)
{
    unsigned char *text = yajl_get_error(s->parser, 0, NULL, 0);
    struct str reason = str_trim(str_of((const char *)text));
    enum err err = why_set(s->why, ERR_REFUSE, "JSON, byte %zu: %.*s",
                           yajl_get_bytes_consumed(s->parser), STR_ARG(reason));
    yajl_free_error(s->parser, text);
    return err;
}

/* yajl waits for the rest of a string that begins behind the value, and never misses it. */
static enum err scan_behind(const struct scan *s)
{
    for (size_t i = s->end; i < s->text.len; i++)
        if (!memchr(" \t\r\n", s->text.ptr[i], 4))
            return why_set(s->why, ERR_REFUSE, "JSON, byte %zu: something behind the value", i);
    return OK;
}

static enum err scan_run(struct scan *s)
{
    yajl_status status = yajl_parse(s->parser, (const unsigned char *)s->text.ptr, s->text.len);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(s->parser);
    if (s->refused)
        return ERR_REFUSE;
    if (s->stopped)
        return OK;
    return status == yajl_status_ok ? scan_behind(s) : scan_fault(s);
}

enum err json_scan(struct str text, const struct json_rules *rules, const struct json_want *wants,
                   size_t n, void *opaque, struct why *why)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_string,
        .yajl_start_map = on_start_map,
        .yajl_map_key = on_map_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_start_array,
        .yajl_end_array = on_end,
    };
    static yajl_alloc_funcs memory = { yajl_take, yajl_resize, yajl_give_back, NULL };
    if (n > MAX_WANTS)
        return why_set(why, ERR_STOP, "more than %d JSON paths in one scan", MAX_WANTS);
    struct buf CLEANUP(buf_clear) as_nul = BUF_INIT(text.len);
    struct scan s = { .input = text, .rules = rules, .wants = wants, .opaque = opaque, .why = why };
    bool has_nul = false;
    enum err err = json_bytes_check(text, rules->nul_in_others, &has_nul, why);
    if (err)
        return err;
    if (rules->has_nul)
        *rules->has_nul = has_nul;
    if (has_nul) { /* yajl makes something of a half; the length stays */
        json_replace_nul(&as_nul, text, STR_LIT("\\u0000"));
        text = buf_str(&as_nul);
    }
    s.text = text;
    paths_compile(&s, n);
    s.parser = yajl_alloc(&callbacks, &memory, &s);
    yajl_config(s.parser, yajl_dont_validate_strings, 1); /* bytes_check did, and strictly */
    err = scan_run(&s);
    yajl_free(s.parser);
    names_free(&s);
    buf_clear(&s.replaced);
    return err;
}

void json_quote(struct buf *to, struct str s)
{
    json_text_put(to, !s.ptr ? STR_LIT("") : s);
}
