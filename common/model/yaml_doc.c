#include "yaml_doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as mem_alloc; the default is exit() */
#include <uthash.h>
#include <yaml.h>

#include "../base/mem.h"
#include "limits.h"

struct yaml_doc {
    char *file;
    struct yaml_doc_node *root;
    struct yaml_doc_node *made_last;
    size_t n_nodes;
};

/* Building a document: the containers that are open, outermost first. */
struct building {
    struct yaml_doc *doc;
    struct why *why;
    struct yaml_doc_node *open[YAML_DOC_MAX_DEPTH];
    size_t depth;
    size_t documents;
};

/* ---- errors ------------------------------------------------------------------------------------
 */

static enum err fault_at(const struct yaml_doc *doc, int line, int column, struct why *why,
                         const char *format, va_list args)
{
    struct why reason;
    vsnprintf(reason.text, sizeof(reason.text), format, args);
    return why_set(why, ERR_REFUSE, "%s:%d:%d: %s", doc->file, line, column, reason.text);
}

enum err yaml_doc_fault(const struct yaml_doc *doc, const struct yaml_doc_node *at, struct why *why,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum err err = fault_at(doc, at->line, at->column, why, format, args);
    va_end(args);
    return err;
}

static enum err mark_fault(const struct yaml_doc *doc, yaml_mark_t mark, struct why *why,
                           const char *format, ...) PRINTF_LIKE(4, 5);
static enum err mark_fault(const struct yaml_doc *doc, yaml_mark_t mark, struct why *why,
                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum err err = fault_at(doc, (int)mark.line + 1, (int)mark.column + 1, why, format, args);
    va_end(args);
    return err;
}

struct yaml_doc_excerpt yaml_doc_excerpt(struct str s)
{
    struct yaml_doc_excerpt ret;
    size_t room = sizeof(ret.text) - sizeof("\"…\""); /* the quotes: yaml_doc_describe */
    size_t n = s.len < room ? s.len : room;
    for (size_t i = 0; i < n; i++)
        ret.text[i] = (char)((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f ? '?' : s.ptr[i]);
    strcpy(ret.text + n, n < s.len ? "…" : "");
    return ret;
}

/* The position of a byte: what libyaml's reader reports instead of a mark. */
static yaml_mark_t mark_of_byte(struct str yaml, size_t offset)
{
    yaml_mark_t mark = { 0 };
    for (size_t i = 0; i < offset && i < yaml.len; i++) {
        mark.column++;
        if (yaml.ptr[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

static char char_at(struct str yaml, yaml_mark_t mark)
{
    struct str line = STR_NONE;
    for (size_t i = 0; i <= mark.line; i++)
        if (!str_split(&yaml, '\n', &line))
            return '\0';
    size_t i = 0;
    for (size_t column = 0; column < mark.column && i < line.len; column++)
        do
            i++; /* the bytes 10xxxxxx continue a character */
        while (i < line.len && ((unsigned char)line.ptr[i] & 0xc0) == 0x80);
    return i < line.len ? line.ptr[i] : '\0';
}

static const char *hint_for(char c)
{
    if (c == '@')
        return "; a name that begins with \"@\" must stand in quotes";
    if (c == '`')
        return "; a text that begins with \"`\" must stand in quotes";
    if (c == '\t')
        return "; indent with spaces, not with tabs";
    return "";
}

static enum err parser_fault(const struct yaml_doc *doc, const yaml_parser_t *parser,
                             struct str yaml, struct why *why)
{
    const char *problem = parser->problem ? parser->problem : "unreadable";
    if (parser->error == YAML_READER_ERROR)
        return mark_fault(doc, mark_of_byte(yaml, parser->problem_offset), why,
                          "not YAML: %s; accepted is UTF-8 text", problem);
    if (parser->error == YAML_MEMORY_ERROR)
        return mark_fault(doc, parser->mark, why, "not YAML: too large a structure");
    return mark_fault(doc, parser->problem_mark, why, "not YAML: %s%s%s%s", problem,
                      parser->context ? " " : "", parser->context ? parser->context : "",
                      hint_for(char_at(yaml, parser->problem_mark)));
}

/* ---- building ----------------------------------------------------------------------------------
 */

static struct yaml_doc_node *node_new(struct yaml_doc *doc, enum yaml_doc_kind kind,
                                      yaml_mark_t mark, struct str text)
{
    struct yaml_doc_node *node = mem_alloc(1, sizeof(*node) + text.len + 1);
    node->kind = kind;
    node->line = (int)mark.line + 1;
    node->column = (int)mark.column + 1;
    if (text.len)
        memcpy(node->copy, text.ptr, text.len);
    node->text = (struct str){ node->copy, text.len };
    node->made_before = doc->made_last;
    doc->made_last = node;
    doc->n_nodes++;
    return node;
}

/* Hangs the node into the innermost open container. */
static enum err attach(struct building *b, struct yaml_doc_node *node)
{
    if (b->doc->n_nodes > YAML_DOC_MAX_NODES)
        return yaml_doc_fault(b->doc, node, b->why, "more than %d values", YAML_DOC_MAX_NODES);
    if (b->depth == 0) {
        b->doc->root = node;
        return OK;
    }
    struct yaml_doc_node *parent = b->open[b->depth - 1];
    bool is_key = parent->kind == YAML_DOC_MAP && parent->n % 2 == 0;
    if (is_key && node->kind != YAML_DOC_TEXT)
        return yaml_doc_fault(b->doc, node, b->why, "a key must be a text, not %s",
                              yaml_doc_kind_name(node));
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->n++;
    return OK;
}

static enum err refuse_extras(struct building *b, yaml_mark_t mark, const void *anchor,
                              const void *tag)
{
    if (anchor)
        return mark_fault(b->doc, mark, b->why, "anchors (&) are not accepted: write it out");
    if (tag)
        return mark_fault(b->doc, mark, b->why, "tags (!) are not accepted: write plain text");
    return OK;
}

static enum err on_text(struct building *b, const yaml_event_t *event)
{
    enum err err =
        refuse_extras(b, event->start_mark, event->data.scalar.anchor, event->data.scalar.tag);
    if (err)
        return err;
    struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    struct yaml_doc_node *node = node_new(b->doc, YAML_DOC_TEXT, event->start_mark, text);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return attach(b, node);
}

static enum err on_open(struct building *b, const yaml_event_t *event)
{
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    enum err err = list ? refuse_extras(b, event->start_mark, event->data.sequence_start.anchor,
                                        event->data.sequence_start.tag)
                        : refuse_extras(b, event->start_mark, event->data.mapping_start.anchor,
                                        event->data.mapping_start.tag);
    if (err)
        return err;
    if (b->depth == YAML_DOC_MAX_DEPTH)
        return mark_fault(b->doc, event->start_mark, b->why, "nested deeper than %d levels",
                          YAML_DOC_MAX_DEPTH);
    struct yaml_doc_node *node =
        node_new(b->doc, list ? YAML_DOC_LIST : YAML_DOC_MAP, event->start_mark, STR_NONE);
    err = attach(b, node);
    if (!err)
        b->open[b->depth++] = node;
    return err;
}

struct seen_key {
    const struct yaml_doc_node *key;
    UT_hash_handle hh;
};

static enum err check_keys(struct building *b, const struct yaml_doc_node *map)
{
    struct seen_key *keys = mem_alloc(map->n / 2 + 1, sizeof(*keys));
    struct seen_key *seen = NULL, *next = keys;
    enum err err = OK;
    for (const struct yaml_doc_node *key = map->first; key; key = key->next->next) {
        struct seen_key *same;
        HASH_FIND(hh, seen, key->copy, key->text.len, same);
        if (same) {
            err = yaml_doc_fault(b->doc, key, b->why,
                                 "\"%s\" is twice in one mapping; the first is at line %d",
                                 yaml_doc_excerpt(key->text).text, same->key->line);
            break;
        }
        next->key = key;
        HASH_ADD_KEYPTR(hh, seen, key->copy, key->text.len, next);
        next++;
    }
    HASH_CLEAR(hh, seen);
    free(keys);
    return err;
}

static enum err on_event(struct building *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++)
            return mark_fault(b->doc, event->start_mark, b->why,
                              "a second document begins here; one is accepted");
        return OK;
    case YAML_ALIAS_EVENT:
        return mark_fault(b->doc, event->start_mark, b->why,
                          "aliases (*) are not accepted: write it out");
    case YAML_SCALAR_EVENT:
        return on_text(b, event);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return on_open(b, event);
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return OK;
    case YAML_MAPPING_END_EVENT:
        return check_keys(b, b->open[--b->depth]);
    default:
        return OK;
    }
}

static enum err build(struct building *b, yaml_parser_t *parser, struct str yaml)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return parser_fault(b->doc, parser, yaml, b->why);
        enum err err = on_event(b, &event);
        bool end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (err || end)
            return err;
    }
}

enum err yaml_doc_parse(struct yaml_doc **ret, const char *file, struct str yaml, struct why *why)
{
    if (yaml.len > ALLOWLIST_MAX_BYTES)
        return why_set(why, ERR_REFUSE, "%s:1:1: %zu bytes; at most %u are accepted", file,
                       yaml.len, ALLOWLIST_MAX_BYTES);
    struct yaml_doc *doc = mem_alloc(1, sizeof(*doc));
    doc->file = mem_dup(file);
    struct building b = { .doc = doc, .why = why };
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort(); /* as mem_alloc: no memory for a few hundred bytes */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(yaml.ptr ? yaml.ptr : ""),
                                 yaml.len);
    enum err err = build(&b, &parser, yaml);
    yaml_parser_delete(&parser);
    if (err) {
        yaml_doc_free(doc);
        return err;
    }
    *ret = doc;
    return OK;
}

void yaml_doc_free(struct yaml_doc *doc)
{
    if (!doc)
        return;
    while (doc->made_last) {
        struct yaml_doc_node *node = doc->made_last;
        doc->made_last = node->made_before;
        free(node);
    }
    free(doc->file);
    free(doc);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

const struct yaml_doc_node *yaml_doc_root(const struct yaml_doc *doc)
{
    return doc->root && !yaml_doc_is_null(doc->root) ? doc->root : NULL;
}

bool yaml_doc_is_null(const struct yaml_doc_node *node)
{
    /* https://yaml.org/type/null.html */
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
        if (node->kind == YAML_DOC_TEXT && !node->quoted && str_is(node->text, nulls[i]))
            return true;
    return false;
}

const char *yaml_doc_kind_name(const struct yaml_doc_node *node)
{
    static const char *const names[] = { "a text", "a list", "a mapping" };
    return yaml_doc_is_null(node) ? "nothing" : names[node->kind];
}

struct yaml_doc_excerpt yaml_doc_describe(const struct yaml_doc_node *node)
{
    struct yaml_doc_excerpt ret = { "" };
    if (node->kind != YAML_DOC_TEXT || yaml_doc_is_null(node)) {
        strcpy(ret.text, yaml_doc_kind_name(node));
        return ret;
    }
    if (!node->text.len) {
        strcpy(ret.text, "an empty text");
        return ret;
    }
    struct yaml_doc_excerpt bare = yaml_doc_excerpt(node->text);
    size_t n = strlen(bare.text);
    ret.text[0] = '"';
    memcpy(ret.text + 1, bare.text, n);
    memcpy(ret.text + 1 + n, "\"", sizeof("\""));
    return ret;
}
