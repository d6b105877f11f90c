/* json_scan against jansson: two parsers must not read two things. What the scan takes, jansson
 * takes and finds the same text at the wanted paths. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    char *text; /* of "a.b", when it is a string */
    size_t n_elements;
    bool in_order; /* tells something only of a text without a name twice */
    struct str whole;
};

static bool on_text(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct seen *seen = opaque;
    (void)want, (void)index;
    free(seen->text);
    seen->text = type == JSON_SCAN_STRING ? str_dup(text) : NULL;
    return true;
}

static bool on_element(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct seen *seen = opaque;
    (void)want, (void)type, (void)text;
    seen->in_order = seen->in_order && index == seen->n_elements;
    seen->n_elements++;
    return true;
}

static bool on_whole(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    (void)want, (void)index;
    if (type == JSON_SCAN_OBJECT && (text.len < 2 || text.ptr[0] != '{'))
        abort();
    ((struct seen *)opaque)->whole = text;
    return true;
}

static const struct json_want wants[] = {
    { .path = "a.b", .found = on_text },
    { .path = "l[]", .found = on_element },
    { .path = "o", .found = on_whole },
};

static void compare(const json_t *root, const struct seen *seen)
{
    const char *text = json_string_value(json_object_get(json_object_get(root, "a"), "b"));
    if ((!!text) != (!!seen->text) || (text && strcmp(text, seen->text) != 0))
        abort();
    if (json_array_size(json_object_get(root, "l")) != seen->n_elements || !seen->in_order)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_rules rules = { .reject_duplicates = true };
    struct seen seen = { NULL, 0, true, STR_NONE };
    json_error_t fault;
    struct why why;
    struct str text = { (const char *)data, size };
    if (!json_scan(text, &rules, wants, 3, &seen, &why)) {
        json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &fault);
        /* jansson's own limits on numbers are no disagreement about the text */
        if (root)
            compare(root, &seen);
        else if (json_error_code(&fault) != json_error_numeric_overflow)
            abort();
        json_decref(root);
    }
    free(seen.text);
    return 0;
}
