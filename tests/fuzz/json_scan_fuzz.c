/* json_scan against jansson: two parsers must take the same texts and read the same values in them.
 *
 * Known differences, each looked for below: json_scan takes only an object and JSON_MAX_DEPTH
 * levels; jansson passes over some raw NUL bytes, and does not take a number that does not fit a
 * double or 64 bits. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/model/json_scan.h"
#include "common/model/limits.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PATHS 64
#define MAX_FOUND 4096
#define PATH_SIZE 256

/* Every path of a document that can be asked for, as far as there is room. */
struct paths {
    char text[MAX_PATHS][PATH_SIZE];
    size_t n;
};

struct found {
    size_t want, index;
    enum json_type type;
    char *text;
    size_t len;
};

struct scanned {
    struct found at[MAX_FOUND];
    size_t n, compared;
};

static size_t path_find(const struct paths *paths, const char *path)
{
    size_t i = 0;
    while (i < paths->n && strcmp(paths->text[i], path) != 0)
        i++;
    return i;
}

/* "" when that member cannot be asked for. */
static void path_of_member(char to[PATH_SIZE], const char *path, const char *name)
{
    int len = *name && !strpbrk(name, ".[")
                  ? snprintf(to, PATH_SIZE, "%s%s%s", path, *path ? "." : "", name)
                  : -1;
    if (len < 0 || len >= PATH_SIZE)
        to[0] = '\0';
}

static void path_of_element(char to[PATH_SIZE], const char *path)
{
    to[0] = '\0';
    if (strlen(path) + 3 <= PATH_SIZE)
        snprintf(to, PATH_SIZE, "%s[]", path);
}

static size_t segments_of(const char *path)
{
    size_t n = *path != '\0';
    for (; *path; path++)
        n += *path == '.' || *path == '[';
    return n;
}

static void paths_collect(struct paths *paths, const json_t *value, const char *path)
{
    char below[PATH_SIZE];
    const char *name;
    json_t *inner;
    size_t i;
    if (path_find(paths, path) == paths->n && paths->n < MAX_PATHS && segments_of(path) <= 8)
        (void)str_copy(paths->text[paths->n++], PATH_SIZE, str_of(path));
    json_object_foreach((json_t *)value, name, inner)
    {
        path_of_member(below, path, name);
        if (*below)
            paths_collect(paths, inner, below);
    }
    json_array_foreach(value, i, inner)
    {
        path_of_element(below, path);
        if (*below)
            paths_collect(paths, inner, below);
    }
}

static bool note(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct scanned *scanned = opaque;
    if (scanned->n == MAX_FOUND)
        return false;
    scanned->at[scanned->n++] =
        (struct found){ want, index, type, str_dup(input_rest(text)), text.len };
    return true;
}

static bool same_value(const struct found *found, const json_t *value)
{
    struct str text = { found->text, found->len };
    switch (found->type) {
    case JSON_SCAN_TRUE:
        return json_is_true(value);
    case JSON_SCAN_FALSE:
        return json_is_false(value);
    case JSON_SCAN_NULL:
        return json_is_null(value);
    case JSON_SCAN_STRING:
        return json_is_string(value) &&
               str_eq(text, (struct str){ json_string_value(value), json_string_length(value) });
    default:
        break;
    }
    struct buf CLEANUP(buf_clear) plain = BUF_INIT(text.len); /* it lies in the text, unchanged */
    json_replace_nul(&plain, text, STR_LIT("\\ufffd"));
    json_t *again = json_loadb(plain.ptr, plain.len, JSON_DECODE_ANY, NULL);
    bool same = json_equal(again, value);
    json_decref(again);
    return same && json_is_number(value) == (found->type == JSON_SCAN_NUMBER) &&
           json_is_array(value) == (found->type == JSON_SCAN_ARRAY) &&
           json_is_object(value) == (found->type == JSON_SCAN_OBJECT);
}

/* In the order in which they end in the text, which is the scan's. */
static void compare(struct scanned *scanned, const struct paths *paths, const json_t *value,
                    const char *path, size_t index)
{
    char below[PATH_SIZE];
    const char *name;
    json_t *inner;
    size_t i;
    json_object_foreach((json_t *)value, name, inner)
    {
        path_of_member(below, path, name);
        if (*below)
            compare(scanned, paths, inner, below, index);
    }
    json_array_foreach(value, i, inner)
    {
        path_of_element(below, path);
        if (*below)
            compare(scanned, paths, inner, below, i);
    }
    size_t want = path_find(paths, path);
    if (want == paths->n || scanned->compared == MAX_FOUND)
        return;
    must(scanned->compared < scanned->n);
    const struct found *found = &scanned->at[scanned->compared++];
    must(found->want == want && found->index == index && same_value(found, value));
}

static size_t depth_of(const json_t *value)
{
    size_t below = 0, i;
    const char *name;
    json_t *inner;
    json_object_foreach((json_t *)value, name, inner)
    {
        size_t depth = depth_of(inner);
        below = depth > below ? depth : below;
    }
    json_array_foreach(value, i, inner)
    {
        size_t depth = depth_of(inner);
        below = depth > below ? depth : below;
    }
    return below + (json_is_object(value) || json_is_array(value));
}

/* plain: the text as jansson is to read it. */
static void both(struct str text, struct str plain, const struct json_rules *rules, bool free_text)
{
    static struct paths paths;
    static struct scanned scanned;
    struct json_want wants[MAX_PATHS];
    json_error_t fault;
    struct why why;
    json_t *root = json_loadb(plain.ptr, plain.len, JSON_REJECT_DUPLICATES, &fault);
    paths.n = scanned.n = scanned.compared = 0;
    if (root)
        paths_collect(&paths, root, "");
    for (size_t i = 0; i < paths.n; i++)
        wants[i] = (struct json_want){ paths.text[i], note, free_text };
    bool taken = !json_scan(text, rules, wants, paths.n, &scanned, &why);
    if (taken && root)
        compare(&scanned, &paths, root, "", 0);
    else if (taken)
        must(json_error_code(&fault) == json_error_numeric_overflow);
    else if (root)
        must(json_is_array(root) || depth_of(root) > JSON_MAX_DEPTH ||
             memchr(text.ptr, '\0', text.len));
    must(!taken || !root || scanned.compared == scanned.n);
    for (size_t i = 0; i < scanned.n; i++)
        free(scanned.at[i].text);
    json_decref(root);
}

/* Once as callbacks are read and once as webhooks, where NUL may be in free text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_rules strict = { .reject_duplicates = true };
    static const struct json_rules free_text = { .reject_duplicates = true, .nul_in_others = true };
    struct str text = { size ? (const char *)data : "", size };
    both(text, text, &strict, false);
    struct buf CLEANUP(buf_clear) plain = BUF_INIT(size);
    json_replace_nul(&plain, text, STR_LIT("\\ufffd"));
    both(text, buf_str(&plain), &free_text, true);
    return 0;
}
