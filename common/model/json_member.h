/* What an object of jansson's says. */
#ifndef CRCR_MODEL_JSON_MEMBER_H
#define CRCR_MODEL_JSON_MEMBER_H

#include "../base/str.h"

struct json_t;

/* The text of that member, borrowed from the object; absent when it is no string, or not there. */
struct str json_member(const struct json_t *object, const char *name);

#endif
