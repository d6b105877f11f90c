#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <string.h>
#include <cmocka.h>

#include "reporter/web/open_dlq.h"

static struct open_dlq *dlq;

static int start(void **state)
{
    (void)state;
    dlq = open_dlq_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    open_dlq_free(dlq);
    return 0;
}

static void park(int32_t partition, int64_t offset, int64_t parked_ms)
{
    struct record r = { .at = { "crcr.dlq", partition, offset }, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "class", STR_LIT("refused"));
    headers_put(&r.headers, "repos", STR_LIT("org/a,org/b"));
    headers_put(&r.headers, "resolves", STR_LIT("0@1")); /* of an earlier life: class is no state */
    headers_put_i64(&r.headers, "parked_ms", parked_ms);
    open_dlq_add(dlq, &r);
}

static void resolve(const char *place, const char *class)
{
    struct record r = { .at = { "crcr.dlq", 0, 900 }, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "class", str_of(class));
    headers_put(&r.headers, "resolves", str_of(place));
    open_dlq_add(dlq, &r);
}

/* The member "dlq" of /api/crcr/pipeline, to be released. */
static json_t *shown(void)
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    buf_putc(&text, '{');
    open_dlq_put(&text, dlq, true);
    buf_putc(&text, '}');
    json_t *root = json_loads(buf_str(&text).ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_t *found = json_incref(json_object_get(root, "dlq"));
    json_decref(root);
    return found;
}

static json_int_t open_now(void)
{
    json_t *queue = shown();
    json_int_t n = json_integer_value(json_object_get(queue, "open"));
    json_decref(queue);
    return n;
}

static const char *text_of(const json_t *queue, size_t entry, const char *name)
{
    const json_t *entries = json_object_get(queue, "entries");
    return json_string_value(json_object_get(json_array_get(entries, entry), name));
}

static void what_is_replayed_or_dropped_is_not_open(void **state)
{
    (void)state;
    park(0, 1, 10);
    park(0, 2, 30);
    park(1, 2, 20);
    resolve("0@1", "replayed");
    resolve("7@7", "dropped"); /* of what retention took */
    json_t *queue = shown();
    assert_int_equal(json_integer_value(json_object_get(queue, "open")), 2);
    assert_true(json_is_false(json_object_get(queue, "more")));
    assert_string_equal(text_of(queue, 0, "position"), "0@2");
    assert_string_equal(text_of(queue, 0, "repos"), "org/a,org/b");
    assert_string_equal(text_of(queue, 0, "parked_at"), "1970-01-01T00:00:00.030Z");
    assert_string_equal(text_of(queue, 1, "position"), "1@2");
    assert_null(text_of(queue, 2, "position"));
    json_decref(queue);
    resolve("0@2", "dropped");
    resolve("1@2", "dropped");
    assert_int_equal(open_now(), 0);
}

static void what_retention_took_is_not_open(void **state)
{
    (void)state;
    park(0, 1, 10);
    park(0, 5, 10);
    park(1, 1, 10);
    open_dlq_expire(dlq, 0, 5);
    assert_int_equal(open_now(), 2);
}

static void of_too_many_the_newest_stay_and_it_says_so(void **state)
{
    (void)state;
    for (int i = 0; i <= OPEN_DLQ_MAX; i++)
        park(0, i, 1000000 + i);
    json_t *queue = shown();
    assert_int_equal(json_integer_value(json_object_get(queue, "open")),
                     OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10 + 1);
    assert_true(json_is_true(json_object_get(queue, "more")));
    assert_string_equal(text_of(queue, 0, "position"), "0@10000");
    json_decref(queue);
    resolve("0@999", "dropped"); /* forgotten */
    assert_int_equal(open_now(), OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10 + 1);
    resolve("0@1000", "dropped");
    assert_int_equal(open_now(), OPEN_DLQ_MAX - OPEN_DLQ_MAX / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_replayed_or_dropped_is_not_open, start, end),
        cmocka_unit_test_setup_teardown(what_retention_took_is_not_open, start, end),
        cmocka_unit_test_setup_teardown(of_too_many_the_newest_stay_and_it_says_so, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
