/* Webhook bodies fitted into little room: the result is JSON, small enough, and keeps what
 * workflows read. The first two bytes choose the room. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/github/payload_fit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Scalars only: a container at such a path is no webhook of GitHub's. */
static void check_same(const json_t *before, const json_t *after, const char *name)
{
    const json_t *old = json_object_get(before, name);
    if (old && !json_is_object(old) && !json_is_array(old) &&
        !json_equal(old, json_object_get(after, name)))
        abort();
}

static void check(struct str body, const struct buf *to, const struct buf *trimmed)
{
    json_t *before = json_loadb(body.ptr, body.len, 0, NULL);
    json_t *after = json_loads(to->ptr, 0, NULL);
    json_t *went = trimmed->len ? json_loads(trimmed->ptr, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if ((before && !after) || (trimmed->len && json_array_size(went) == 0))
        abort();
    check_same(before, after, "action");
    check_same(before, after, "number");
    check_same(before, after, "after");
    check_same(before, after, "ref");
    check_same(json_object_get(before, "repository"), json_object_get(after, "repository"),
               "full_name");
    check_same(json_object_get(before, "pull_request"), json_object_get(after, "pull_request"),
               "title");
    check_same(json_object_get(json_object_get(before, "pull_request"), "head"),
               json_object_get(json_object_get(after, "pull_request"), "head"), "sha");
    json_decref(before);
    json_decref(after);
    json_decref(went);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf to, trimmed;
    struct why why;
    if (size < 2)
        return 0;
    size_t max = 16 + (size_t)(data[0] | (data[1] & 0x0f) << 8);
    struct str body = { (const char *)data + 2, size - 2 };
    buf_init(&to, 1u << 20);
    buf_init(&trimmed, 4096);
    if (!payload_fit(body, max, &to, &trimmed, &why)) {
        if (to.len > max)
            abort();
        check(body, &to, &trimmed);
    }
    buf_clear(&to);
    buf_clear(&trimmed);
    return 0;
}
