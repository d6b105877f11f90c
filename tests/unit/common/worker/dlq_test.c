#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/model/limits.h"
#include "common/worker/dlq.h"

static char zeros[RECORD_MAX_BYTES];

static struct str of_bytes(size_t len)
{
    return (struct str){ zeros, len };
}

static size_t whole_bytes(const struct dlq_record *b)
{
    return b->key.len + b->value.len + headers_bytes(&b->headers);
}

static void poison_init(struct dlq_record *b, struct str key, struct str value,
                        const struct headers *headers)
{
    const struct record record = { .at.topic = "crcr.events", .key = key, .value = value };
    dlq_record_init(b, &record, headers, "poison", "unreadable", 1);
}

static void it_says_why_and_from_where(void **state)
{
    (void)state;
    struct headers h;
    struct dlq_record b;
    headers_init(&h);
    headers_put(&h, "delivery", STR_LIT("d"));
    headers_put(&h, "error", STR_LIT("an earlier one"));
    headers_put(&h, "cut", STR_LIT("by others"));
    dlq_record_init(&b,
                    &(struct record){ .at.topic = "crcr.dispatch.l1",
                                      .key = STR_LIT("key"),
                                      .value = STR_LIT("value") },
                    &h, "refused", "GitHub said 404", 1234);
    assert_true(str_is(b.key, "key"));
    assert_true(str_is(b.value, "value"));
    assert_true(str_is(headers_get(&b.headers, "delivery"), "d"));
    assert_true(str_is(headers_get(&b.headers, "source_topic"), "crcr.dispatch.l1"));
    assert_true(str_is(headers_get(&b.headers, "class"), "refused"));
    assert_true(str_is(headers_get(&b.headers, "error"), "GitHub said 404"));
    assert_int_equal(headers_get_i64(&b.headers, "parked_ms", 0), 1234);
    assert_int_equal(b.headers.n, 5);
}

static void a_webhook_as_large_as_github_sends_is_kept_whole(void **state)
{
    (void)state;
    struct headers h;
    struct dlq_record b;
    headers_init(&h);
    poison_init(&b, STR_LIT("key"), of_bytes(WEBHOOK_MAX_BYTES), &h);
    assert_int_equal(b.value.len, WEBHOOK_MAX_BYTES);
    assert_null(headers_get(&b.headers, "cut").ptr);
}

/* Each of the three may be what is too large. */
static void what_cannot_be_written_is_cut_and_says_so(void **state)
{
    (void)state;
    static const size_t sizes[][3] = { { 3, RECORD_MAX_BYTES - 4096, 1 },
                                       { RECORD_MAX_BYTES, 0, 1 },
                                       { 3, 5, RECORD_MAX_BYTES },
                                       { 9u << 20, 9u << 20, 9u << 20 } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const size_t *size = sizes[i];
        struct headers h;
        struct dlq_record b;
        char expected[160];
        headers_init(&h);
        headers_put(&h, "delivery", STR_LIT("d"));
        headers_put(&h, "large", of_bytes(size[2]));
        poison_init(&b, of_bytes(size[0]), of_bytes(size[1]), &h);
        assert_true(whole_bytes(&b) < 80000);
        assert_true(str_is(headers_get(&b.headers, "delivery"), "d"));
        assert_true(str_is(headers_get(&b.headers, "error"), "unreadable"));
        snprintf(expected, sizeof(expected),
                 "too large to keep: a key of %zu bytes, a value of %zu, headers of %zu", size[0],
                 size[1], size[2] + 14);
        assert_true(str_is(headers_get(&b.headers, "cut"), expected));
    }
}

static void a_tombstone_stays_one(void **state)
{
    (void)state;
    struct headers h;
    struct dlq_record b;
    headers_init(&h);
    poison_init(&b, of_bytes(RECORD_MAX_BYTES), STR_NONE, &h);
    assert_null(b.value.ptr);
}

static void our_headers_find_room(void **state)
{
    (void)state;
    static const char *const ours[] = { "source_topic", "class", "error", "parked_ms" };
    for (size_t len = 1; len <= RECORD_MAX_BYTES; len += RECORD_MAX_BYTES - 1) {
        struct headers h;
        struct dlq_record b;
        headers_init(&h);
        while (headers_put(&h, "foreign", STR_LIT("x")))
            ;
        poison_init(&b, STR_NONE, of_bytes(len), &h);
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
            assert_non_null(headers_get(&b.headers, ours[i]).ptr);
        assert_int_equal(headers_get(&b.headers, "cut").ptr != NULL, len > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_why_and_from_where),
        cmocka_unit_test(a_webhook_as_large_as_github_sends_is_kept_whole),
        cmocka_unit_test(what_cannot_be_written_is_cut_and_says_so),
        cmocka_unit_test(a_tombstone_stays_one),
        cmocka_unit_test(our_headers_find_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
