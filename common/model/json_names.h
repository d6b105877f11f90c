/* Private to json_scan: the member names of the objects that are open, to find one that comes
 * twice. Names are sorted when their object closes, so no choice of names makes it slow. PURE. */
#ifndef CRCR_MODEL_JSON_NAMES_H
#define CRCR_MODEL_JSON_NAMES_H

#include "../base/str.h"
#include "limits.h"

struct json_name_copy;

struct json_names { /* all zero: empty */
    struct str *at;
    size_t n, cap;
    size_t base[JSON_MAX_DEPTH]; /* where the names of each open object begin */
    size_t depth;
    struct json_name_copy *copies; /* of names that were written with escapes */
};

void json_names_open(struct json_names *names);
/* name is kept by pointer when it lies in text, and copied otherwise. */
void json_names_add(struct json_names *names, struct str name, struct str text);
/* Forgets the innermost object; false when one of its names was there twice. */
bool json_names_close(struct json_names *names);
void json_names_clear(struct json_names *names);

#endif
