#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "common/base/json_text.h"

static void written(struct str s, const char *expected)
{
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 1 << 16);
    json_text_put(&b, s);
    assert_string_equal(buf_str(&b).ptr, expected);
}

static void strings_are_quoted_and_escaped(void **state)
{
    (void)state;
    written(STR_LIT("plain"), "\"plain\"");
    written(STR_LIT(""), "\"\"");
    written(STR_NONE, "null");
    written(STR_LIT("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    written(STR_LIT("\n\r\t\b"), "\"\\n\\r\\t\\u0008\"");
    written((struct str){ "\0\x1f\x7f", 3 }, "\"\\u0000\\u001f\\u007f\"");
    written(STR_LIT("ä€😀"), "\"ä€😀\"");
}

#define BAD "\xef\xbf\xbd"

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    written(STR_LIT("a\xff"
                    "b"),
            "\"a" BAD "b\"");
    written(STR_LIT("\xc3"), "\"" BAD "\"");                         /* cut off */
    written(STR_LIT("\xc0\xaf"), "\"" BAD BAD "\"");                 /* not the shortest form */
    written(STR_LIT("\xed\xa0\x80"), "\"" BAD BAD BAD "\"");         /* a surrogate */
    written(STR_LIT("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\""); /* past U+10FFFF */
    written(STR_LIT("\xe2\x82"), "\"" BAD BAD "\"");
}

/* Every pair of bytes, between two others, is JSON that another parser reads. */
static void the_result_is_always_json(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 1 << 16);
    for (unsigned i = 0; i < 65536; i++) {
        char bytes[] = { '<', (char)(i >> 8), (char)i, '>' };
        buf_reset(&b);
        json_text_put(&b, (struct str){ bytes, sizeof(bytes) });
        json_t *read = json_loadb(b.ptr, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!json_is_string(read))
            fail_msg("%04x gives %s", i, b.ptr);
        json_decref(read);
    }
}

static void characters_are_measured(void **state)
{
    (void)state;
    assert_int_equal(json_text_utf8(STR_LIT("a")), 1);
    assert_int_equal(json_text_utf8(STR_LIT("äb")), 2);
    assert_int_equal(json_text_utf8(STR_LIT("€")), 3);
    assert_int_equal(json_text_utf8(STR_LIT("😀")), 4);
    assert_int_equal(json_text_utf8(STR_LIT("\x80")), 0);
    assert_int_equal(json_text_utf8(STR_NONE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_quoted_and_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(the_result_is_always_json),
        cmocka_unit_test(characters_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
