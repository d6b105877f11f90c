/* One pass over a JSON object (RFC 8259) without building a document. Finds the values of the paths
 * that are asked for, and the byte range of members. PURE. */
#ifndef CRCR_MODEL_JSON_SCAN_H
#define CRCR_MODEL_JSON_SCAN_H

#include "../base/err.h"
#include "../base/str.h"

enum json_type {
    JSON_SCAN_STRING,
    JSON_SCAN_NUMBER,
    JSON_SCAN_TRUE,
    JSON_SCAN_FALSE,
    JSON_SCAN_NULL,
    JSON_SCAN_OBJECT,
    JSON_SCAN_ARRAY
};

/* path: member names joined with dots, "[]" for every element of an array:
 * "pull_request.labels[].name", at most 8 of them; "" is the object itself. Names that hold a dot
 * or a bracket cannot be asked for. */
struct json_want {
    const char *path;
    /* text: a string decoded, a number as written, an object or array as the bytes of the input
     * from its opening to its closing bracket (reported when it closes). Borrowed during the call;
     * an object or array lies in the input, unchanged.
     * False stops the scan early: json_scan then returns OK, and what follows is not validated.
     * index: of the innermost array on the path, else 0. */
    bool (*found)(void *opaque, size_t want, enum json_type type, struct str text, size_t index);
    bool free_text; /* NUL is reported as U+FFFD; else the text is refused */
};

struct json_rules {
    bool reject_duplicates; /* a member name twice in one object: ERR_REFUSE */
    size_t max_members;     /* of all objects together; 0: any number */
    bool nul_in_others;     /* NUL is refused only in what is wanted */
    bool *has_nul;          /* when OK: there is one anywhere; NULL: not asked for */
    /* NULL: not asked for. A member that no want is or leads to, of an object that a want leads
     * into; object is its path and a dot, "" for the outermost. Borrowed during the call. */
    void (*unknown)(void *opaque, struct str object, struct str name);
};

/* NUL here is an escaped one, or an escaped half of a surrogate pair: neither is text that
 * everybody takes (GitHub refuses a dispatch with it).
 *
 * Validates the text (an object, well-formed, valid UTF-8, nesting up to JSON_MAX_DEPTH,
 * nothing behind it, no raw NUL, no escaped one either unless the rules say so) and reports what is
 * wanted, in the order of the text; a member that comes twice is reported twice unless duplicates
 * are refused. At most 64 wants. ERR_REFUSE with the byte offset and the reason: something may have
 * been reported before. */
enum err json_scan(struct str text, const struct json_rules *rules, const struct json_want *wants,
                   size_t n, void *opaque, struct why *why) MUST_CHECK;

/* Appends text with another text instead of each NUL as above: "", or an escape. In a member's
 * name it becomes U+FFFD and the last three digits of its escape, which is as long: names that
 * differ stay different. Any bytes do as text; what is no JSON is none afterwards. */
struct buf;
void json_replace_nul(struct buf *to, struct str text, struct str with);

/* Appends s as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void json_quote(struct buf *to, struct str s);

#endif
