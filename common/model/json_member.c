#include "json_member.h"

#include <jansson.h>

struct str json_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return (struct str){ json_string_value(value), json_string_length(value) };
}
