/* A YAML file as a tree, for allowlist, providers, and the files that crcrctl reads
 * whose every node knows where it is. libyaml underneath. What an outsider could use to make a
 * small file large or ambiguous is refused: anchors and aliases, tags, duplicate keys, several
 * documents, deep nesting. PURE. */
#ifndef CRCR_MODEL_YAML_DOC_H
#define CRCR_MODEL_YAML_DOC_H

#include "../base/err.h"
#include "../base/str.h"

#define YAML_DOC_MAX_DEPTH 16
#define YAML_DOC_MAX_NODES 400000

enum yaml_doc_kind { YAML_DOC_TEXT, YAML_DOC_LIST, YAML_DOC_MAP };

struct yaml_doc_node {
    enum yaml_doc_kind kind;
    int line, column; /* from 1 */
    bool quoted;      /* a text in quotes: never null */
    struct str text;
    struct yaml_doc_node *first; /* of a list: the elements; of a map: key, value, key, value, … */
    struct yaml_doc_node *last;
    struct yaml_doc_node *next;
    struct yaml_doc_node *made_before; /* all nodes of a document, for freeing */
    size_t n;                          /* how many children; a map has two a member */
    char copy[];                       /* the bytes of text */
};

struct yaml_doc;

/* file is the name used in errors, "file:line:column: reason", and is copied. ERR_REFUSE at the
 * first fault. */
enum err yaml_doc_parse(struct yaml_doc **ret, const char *file, struct str yaml,
                        struct why *why) MUST_CHECK;
void yaml_doc_free(struct yaml_doc *doc);
/* NULL when there is no document, or it is empty. */
const struct yaml_doc_node *yaml_doc_root(const struct yaml_doc *doc);

/* Nothing, "~" or "null" without quotes. */
bool yaml_doc_is_null(const struct yaml_doc_node *node);
/* "a text", "a list", "a mapping" or "nothing". */
const char *yaml_doc_kind_name(const struct yaml_doc_node *node);
/* Sets "file:line:column: " and the reason, returns ERR_REFUSE. */
enum err yaml_doc_fault(const struct yaml_doc *doc, const struct yaml_doc_node *at, struct why *why,
                        const char *format, ...) PRINTF_LIKE(4, 5);

/* Text of the file for an error: cut, controls replaced. */
#define YAML_DOC_EXCERPT 84
struct yaml_doc_excerpt {
    char text[YAML_DOC_EXCERPT];
};
struct yaml_doc_excerpt yaml_doc_excerpt(struct str s);
/* The text in quotes, "an empty text", or what the node is instead of a text. */
struct yaml_doc_excerpt yaml_doc_describe(const struct yaml_doc_node *node);

#endif
