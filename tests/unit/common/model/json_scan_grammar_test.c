/* What json_scan takes as JSON, and what it makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/model/json_scan.h"

static const struct json_rules strict = { .reject_duplicates = true };

static void assert_refused(struct str text, const char *reason)
{
    struct why why = { "" };
    assert_int_equal(json_scan(text, &strict, NULL, 0, NULL, &why), ERR_REFUSE);
    if (!strstr(why.text, reason))
        fail_msg("'%.*s': '%s' lacks '%s'", STR_ARG(text), why.text, reason);
}

static void assert_accepted(struct str text)
{
    struct why why = { "" };
    if (json_scan(text, &strict, NULL, 0, NULL, &why))
        fail_msg("'%.*s': %s", STR_ARG(text), why.text);
}

static bool keep(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    (void)want, (void)type, (void)index;
    struct buf *to = opaque;
    buf_reset(to);
    buf_put(to, text);
    return true;
}

/* The value of member "b". */
static struct str value_of(struct buf *kept, struct str text)
{
    const struct json_want want = { .path = "b", .found = keep };
    struct why why = { "" };
    if (json_scan(text, &strict, &want, 1, kept, &why))
        fail_msg("'%.*s': %s", STR_ARG(text), why.text);
    return buf_str(kept);
}

/* Cases as in JSONTestSuite. */
static void values_are_those_of_rfc_8259_and_no_others(void **state)
{
    (void)state;
    static const char *const accepted[] = { "0",
                                            "-0",
                                            "-0.0",
                                            "0e1",
                                            "0e+1",
                                            "1E-002",
                                            "1e400",
                                            "1.5e3",
                                            "123456789012345678901234567890.5",
                                            "[]",
                                            "{}",
                                            "[[]   ]",
                                            "{\"\":0}",
                                            "[1,\n1\n,\r\t1 ]",
                                            "\"\x7f\"",
                                            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                            "\"\\u0012\\uFFFF\\uabCD\"",
                                            "\"\\\\u0000\"",
                                            "\"\\\\\\\"\"",
                                            "\"\xe2\x80\xa8\xef\xbf\xbf\xef\xbb\xbf\"" };
    static const char *const refused[] = { "01",
                                           "-01",
                                           "00",
                                           "1.",
                                           ".5",
                                           "-.5",
                                           "2.e3",
                                           "1e",
                                           "1e+",
                                           "1e1.5",
                                           "1.2.3",
                                           "+1",
                                           "--1",
                                           "-",
                                           "- 1",
                                           "1 000",
                                           "0x1",
                                           "1a",
                                           "-a",
                                           "Infinity",
                                           "-Infinity",
                                           "nan",
                                           "\xef\xbc\x91",
                                           "tru",
                                           "True",
                                           "truee",
                                           "true1",
                                           "nulL",
                                           "fals",
                                           "*",
                                           "[",
                                           "]",
                                           "[}",
                                           "{]",
                                           "[1",
                                           "[1,,2]",
                                           "[,1]",
                                           "[1,]",
                                           "[1;2]",
                                           "[1:2]",
                                           "[1]]",
                                           "[\"a\" \"b\"]",
                                           "[1 true]",
                                           "[\f]",
                                           "[\xc2\xa0]",
                                           "[\xe2\x81\xa0]",
                                           "{\"a\" 1}",
                                           "{\"a\"::1}",
                                           "{\"a\",1}",
                                           "{\"a\":1 \"b\":2}",
                                           "{\"a\":1,,\"b\":2}",
                                           "{,\"a\":1}",
                                           "{a:1}",
                                           "{1:1}",
                                           "{null:1}",
                                           "{\"a\":1,}",
                                           "{\"a\":1}}",
                                           "{\"a\":/*x*/1}",
                                           "1//",
                                           "1#",
                                           "\"",
                                           "\"a",
                                           "\"a\"b",
                                           "\"a\"\"",
                                           "'a'",
                                           "\"\\a\"",
                                           "\"\\'\"",
                                           "\"\\x41\"",
                                           "\"\\U0041\"",
                                           "\"\\0\"",
                                           "\"\\\xc3\xa9\"",
                                           "\"\\u\"",
                                           "\"\\u123\"",
                                           "\"\\u00g0\"",
                                           "\"\\u 041\"",
                                           "\"\\ud83d\\u12\"",
                                           "\"\\ud83d\\x\"",
                                           "\"\\\"",
                                           "\"\\\\\\\"",
                                           "\"\n\"",
                                           "\"\x1f\"" };
    struct buf CLEANUP(buf_clear) text = BUF_INIT(100);
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        buf_reset(&text);
        buf_printf(&text, "{\"v\":%s}", accepted[i]);
        assert_accepted(buf_str(&text));
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        buf_reset(&text);
        buf_printf(&text, "{\"v\":%s}", refused[i]);
        assert_refused(buf_str(&text), "JSON, byte ");
    }
}

/* Half of a surrogate pair is no fault here: the other half may be what is missing. */
static void assert_ends_at(struct str text)
{
    static const struct json_rules callbacks = { .nul_in_others = true };
    struct why why = { "" };
    char begin[64];
    snprintf(begin, sizeof(begin), "JSON, byte %zu: ", text.len);
    assert_int_equal(json_scan(text, &callbacks, NULL, 0, NULL, &why), ERR_REFUSE);
    if (strncmp(why.text, begin, strlen(begin)) != 0 || !strstr(why.text, "; the text ends there"))
        fail_msg("'%.*s': '%s'", STR_ARG(text), why.text);
}

/* Each in a block of its own size, so that ASan sees what is read behind it. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct str whole =
        STR_LIT("{\"a\":[{\"b\\u00e9\":-1.5e+3,\"c\":\"\xe2\x82\xac \\ud83d\\ude80, and "
                "more than sixteen bytes\"},true , false,null],\"d\" : {}}");
    assert_accepted(whole);
    for (size_t n = 0; n < whole.len; n++) {
        char *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, whole.ptr, n);
        assert_refused((struct str){ cut, n }, "JSON, byte ");
        assert_ends_at((struct str){ cut, n });
        free(cut);
    }
    assert_refused(STR_NONE, "not an object");
}

static void strings_are_looked_at_wherever_they_lie(void **state)
{
    (void)state;
    static const struct {
        const char *inside, *reason; /* NULL: nothing is wrong */
    } parts[] = { { "\\n", NULL },
                  { "\xc3\xa9", NULL },
                  { "\x1f", "control" },
                  { "\xff", "UTF" },
                  { "\\u0000", "NUL in a string" },
                  { "\\q", "escape" } };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (int before = 0; before < 40; before++)
            for (int after = 0; after < 20; after += 19) {
                char text[128];
                int n = snprintf(text, sizeof(text), "{\"v\":\"%.*s%s%.*s\"}", before,
                                 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", parts[i].inside,
                                 after, "abcdefghijklmnopqrst");
                struct str t = { text, (size_t)n };
                if (parts[i].reason)
                    assert_refused(t, parts[i].reason);
                else
                    assert_accepted(t);
            }
}

static void fault_is_named_with_its_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } cases[] = {
        { "[]", "JSON, byte 0: not an object" },
        { "{\"a\":nil}", "JSON, byte 5: no value of JSON" },
        { "{\"a\":1;}", "JSON, byte 6: a comma or the end of an object is missing" },
        { "{\"a\":[1;]}", "JSON, byte 7: a comma or the end of an array is missing" },
        { "{\"a\"=1}", "JSON, byte 4: a colon is missing" },
        { "{\"a\":1,}", "JSON, byte 7: the name of a member is missing" },
        { "{\"a\":", "JSON, byte 5: a value is missing; the text ends there" },
        { "{\"a\":\"b", "JSON, byte 7: a string without its end; the text ends there" },
        { "{\"a\":\"\\u00e", "JSON, byte 11: a string without its end; the text ends there" },
        { "{\"a\":\"\xc3", "JSON, byte 7: a string without its end; the text ends there" },
        { "{\"a\":nul", "JSON, byte 8: half a value; the text ends there" },
        { "{\"a\":1",
          "JSON, byte 6: a comma or the end of an object is missing; the text ends there" },
        { "{\"a\":\"b\\q\"}", "JSON, byte 7: no such escape" },
        { "{\"a\":-x}", "JSON, byte 6: a digit is missing" },
        { "{\"a\":012}", "JSON, byte 5: a number that begins with 0" },
        { "{} {}", "JSON, byte 3: something behind the object" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct why why;
        assert_int_equal(json_scan(str_of(cases[i].text), &strict, NULL, 0, NULL, &why),
                         ERR_REFUSE);
        assert_string_equal(why.text, cases[i].fault);
    }
}

static void escapes_are_decoded_in_values_and_names(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) kept = BUF_INIT(1000);
    struct str text = STR_LIT("{\"a\":\"\\n\",\"\\u0062\":\"\\\"\\\\\\/"
                              "\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude80\\uffff.\"}");
    assert_string_equal(value_of(&kept, text).ptr,
                        "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80\xef\xbf\xbf.");
}

/* Names with one hash and with many, and at most as many as are compared by it, or more. */
static void name_twice_is_found_among_any_number(void **state)
{
    (void)state;
    for (int n = 2; n < 600; n += n < 260 ? 1 : 37) {
        struct buf CLEANUP(buf_clear) text = BUF_INIT(1 << 16);
        buf_putc(&text, '{');
        for (int i = 0; i < n; i++)
            buf_printf(&text, i % 2 ? "\"same ends %d same ends\":0," : "\"%d\":0,", i);
        size_t end = text.len;
        buf_puts(&text, "\"\":0}");
        assert_accepted(buf_str(&text));
        text.len = end;
        buf_printf(&text, "\"same ends %d same\\u0020ends\":0}", n / 2 | 1);
        assert_refused(buf_str(&text), "twice");
        text.len = end;
        buf_printf(&text, "\"%d\":0}", n / 2 & ~1);
        assert_refused(buf_str(&text), "twice");
    }
}

static void huge_strings_and_names_are_read(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(8u << 20);
    struct buf CLEANUP(buf_clear) kept = BUF_INIT(8u << 20);
    buf_puts(&text, "{\"");
    for (size_t i = 0; i < 1u << 20; i++)
        buf_puts(&text, "\\n");
    buf_puts(&text, "\":1,\"b\":\"");
    for (size_t i = 0; i < 1u << 20; i++)
        buf_puts(&text, "\\t");
    buf_puts(&text, "\"}");
    assert_int_equal(value_of(&kept, buf_str(&text)).len, 1u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_rfc_8259_and_no_others),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(strings_are_looked_at_wherever_they_lie),
        cmocka_unit_test(fault_is_named_with_its_byte),
        cmocka_unit_test(escapes_are_decoded_in_values_and_names),
        cmocka_unit_test(name_twice_is_found_among_any_number),
        cmocka_unit_test(huge_strings_and_names_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
