/* JSON from GitHub, and what an object of jansson's says. */
#ifndef CRCR_MODEL_JSON_MEMBER_H
#define CRCR_MODEL_JSON_MEMBER_H

#include "../base/err.h"
#include "../base/str.h"

struct json_t;

/* A document that GitHub sent, or that is to be read as it: NUL and half of a surrogate pair, both
 * escaped, are NUL in a value (in a name: json_replace_nul). The caller's. NULL, and the reason in
 * why: it is no object or array, or a member's name comes twice in one object. */
struct json_t *json_document(struct str text, struct why *why);

/* The text of that member, borrowed from the object; absent when it is no string, or not there. */
struct str json_member(const struct json_t *object, const char *name);

#endif
