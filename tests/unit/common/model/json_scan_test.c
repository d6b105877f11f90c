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

/* Everything that is found, as "<want>:<index>:<text>\n". */
static struct buf seen;
static bool go_on;

static bool note(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    (void)opaque;
    (void)type;
    buf_printf(&seen, "%zu:%zu:%.*s\n", want, index, STR_ARG(text));
    return go_on;
}

static int before(void **state)
{
    (void)state;
    buf_init(&seen, 1 << 20);
    go_on = true;
    return 0;
}

static int after(void **state)
{
    (void)state;
    buf_clear(&seen);
    return 0;
}

static enum err scan(struct str text, const struct json_rules *rules, const char *a, const char *b,
                     struct why *why)
{
    const struct json_want wants[] = { { .path = a, .found = note }, { .path = b, .found = note } };
    return json_scan(text, rules, wants, !b ? 1 : 2, NULL, why);
}

static const struct json_rules lax = { 0 };

static void assert_seen(const char *expected)
{
    assert_string_equal(buf_str(&seen).ptr, expected);
}

static void assert_refused_by(struct str text, const struct json_rules *rules, const char *reason)
{
    struct why why = { "" };
    assert_int_equal(json_scan(text, rules, NULL, 0, NULL, &why), ERR_REFUSE);
    if (!strstr(why.text, reason))
        fail_msg("'%.*s': '%s' lacks '%s'", STR_ARG(text), why.text, reason);
}

static void assert_accepted(struct str text)
{
    struct why why = { "" };
    if (json_scan(text, &lax, NULL, 0, NULL, &why))
        fail_msg("'%.*s': %s", STR_ARG(text), why.text);
}

static void members_are_found_by_path(void **state)
{
    (void)state;
    struct why why;
    struct str text = STR_LIT("{\"a\":{\"b\":1,\"c\":{\"b\":2}},\"b\":3,\"c\":\"x\\n\\u00e9\"}");
    assert_int_equal(scan(text, &lax, "a.b", "c", &why), OK);
    assert_seen("0:0:1\n1:0:x\n\xc3\xa9\n");
}

static void elements_are_found_with_their_index(void **state)
{
    (void)state;
    struct why why;
    struct str text = STR_LIT("{\"l\":[{\"n\":\"a\"},7,{\"x\":[0,1],\"n\":\"b\"}],\"n\":\"no\"}");
    assert_int_equal(scan(text, &lax, "l[].n", "l[].x[]", &why), OK);
    assert_seen("0:0:a\n1:0:0\n1:1:1\n0:2:b\n");
}

static void whole_members_are_given_as_their_bytes(void **state)
{
    (void)state;
    struct why why;
    struct str text = STR_LIT(" { \"a\" : { \"b\" : [ 1 , {} ] } , \"c\":[ {\"d\":1 } ] } ");
    assert_int_equal(scan(text, &lax, "a", "c[]", &why), OK);
    assert_seen("0:0:{ \"b\" : [ 1 , {} ] }\n1:0:{\"d\":1 }\n");
}

static void outermost_value_is_the_empty_path(void **state)
{
    (void)state;
    struct why why;
    assert_int_equal(scan(STR_LIT(" {\"l\":[1]} "), &lax, "", "l[]", &why), OK);
    assert_seen("1:0:1\n0:0:{\"l\":[1]}\n");
}

static void member_and_its_own_members_can_both_be_wanted(void **state)
{
    (void)state;
    struct why why;
    assert_int_equal(scan(STR_LIT("{\"a\":{\"b\":null}}"), &lax, "a", "a.b", &why), OK);
    assert_seen("1:0:null\n0:0:{\"b\":null}\n");
}

static void numbers_are_given_as_written(void **state)
{
    (void)state;
    struct why why;
    struct str text = STR_LIT("{\"l\":[12345678901234567890123,-0.10e+5,true]}");
    assert_int_equal(scan(text, &lax, "l[]", NULL, &why), OK);
    assert_seen("0:0:12345678901234567890123\n0:1:-0.10e+5\n0:2:true\n");
}

static void false_ends_the_scan(void **state)
{
    (void)state;
    struct why why;
    go_on = false;
    assert_int_equal(scan(STR_LIT("{\"a\":1,\"a\":2,"), &lax, "a", NULL, &why), OK);
    assert_seen("0:0:1\n");
}

static void malformed_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    " ",    "{",    "{\"a\"}", "{\"a\":}", "{\"a\":1,}",     "{'a':1}", "{} {}",
        "{}x", "{}\v", "\f{}", "/**/{}",  "{}\"",     "\xef\xbb\xbf{}", "{}\"a",   "{} \"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_refused_by(str_of(texts[i]), &lax, "JSON, byte ");
    static const char *const values[] = {
        "[1,]",  "[01]",  "[1 2]",     "[\"a]",       "['a']",      "[1.]",
        "[-]",   "[nul]", "[\"\\x\"]", "[\"\\u12\"]", "[\"a\nb\"]", "[\"\t\"]",
        "[NaN]", "1 \"a", "null\"",    "\"a\" \"",
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char text[64];
        int n = snprintf(text, sizeof(text), "{\"v\":%s}", values[i]);
        assert_refused_by((struct str){ text, (size_t)n }, &lax, "JSON, byte ");
    }
}

static void invalid_utf8_is_refused_wherever_it_lies(void **state)
{
    (void)state;
    static const char *const bad[] = { "\x80",
                                       "\xc0\x80",
                                       "\xc3",
                                       "\xe0\x80\x80",
                                       "\xed\xa0\x80",
                                       "\xf0\x80\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xff" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (int shift = 0; shift < 8; shift++) {
            char text[64];
            int n = snprintf(text, sizeof(text), "{\"%.*s%s\":1}", shift, "abcdefgh", bad[i]);
            assert_refused_by((struct str){ text, (size_t)n }, &lax, "UTF-8");
        }
    }
    assert_accepted(STR_LIT("{\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\":1}"));
}

static void nul_is_refused_raw_and_escaped(void **state)
{
    (void)state;
    assert_refused_by(STR_LIT("{\"a\0b\":1}"), &lax, "control character");
    assert_refused_by(STR_LIT("{}\0"), &lax, "behind");
    assert_refused_by(STR_LIT("{\"a\\u0000\":1}"), &lax, "NUL");
    assert_accepted(STR_LIT("{\"\\\\u0000\":1}"));
    assert_accepted(STR_LIT("{\"\\u0001\":1}"));
}

static void half_a_surrogate_pair_is_refused(void **state)
{
    (void)state;
    assert_refused_by(STR_LIT("{\"\\ud83d\":1}"), &lax, "surrogate");
    assert_refused_by(STR_LIT("{\"\\uDE00\":1}"), &lax, "surrogate");
    assert_refused_by(STR_LIT("{\"\\ud83d\\u0041\":1}"), &lax, "surrogate");
    assert_refused_by(STR_LIT("{\"\\ud83d\\ud83d\\ude00\":1}"), &lax, "surrogate");
    assert_accepted(STR_LIT("{\"\\ud83d\\ude00\":1}"));
}

/* An object, and so many arrays in it. */
static struct str nested(struct buf *text, int arrays)
{
    buf_reset(text);
    buf_puts(text, "{\"a\":");
    for (int i = 0; i < arrays; i++)
        buf_putc(text, '[');
    for (int i = 0; i < arrays; i++)
        buf_putc(text, ']');
    buf_putc(text, '}');
    return buf_str(text);
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(1000);
    assert_refused_by(nested(&text, 64), &lax, "nested");
    assert_accepted(nested(&text, 63));
}

static void name_twice_in_one_object_is_refused_on_request(void **state)
{
    (void)state;
    const struct json_rules strict = { .reject_duplicates = true };
    assert_accepted(STR_LIT("{\"a\":1,\"a\":2}"));
    assert_refused_by(STR_LIT("{\"a\":1,\"a\":2}"), &strict, "twice");
    assert_refused_by(STR_LIT("{\"a\":1,\"\\u0061\":2}"), &strict, "twice");
    assert_refused_by(STR_LIT("{\"a\":[{\"b\":{\"\":1,\"x\":2,\"\":3}}]}"), &strict, "twice");
    struct why why;
    struct str apart = STR_LIT("{\"a\":{\"a\":{\"b\":1}},\"b\":[{\"a\":1},{\"a\":2}]}");
    assert_int_equal(json_scan(apart, &strict, NULL, 0, NULL, &why), OK);
}

static void name_twice_among_very_many_is_found(void **state)
{
    (void)state;
    const struct json_rules strict = { .reject_duplicates = true };
    struct buf text;
    buf_init(&text, 1 << 22);
    buf_puts(&text, "{");
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "\"k%d\":{},", i);
    size_t end = text.len;
    buf_puts(&text, "\"last\":0}");
    struct why why;
    assert_int_equal(json_scan(buf_str(&text), &strict, NULL, 0, NULL, &why), OK);
    text.len = end;
    buf_puts(&text, "\"k\\u0035\":0}");
    assert_refused_by(buf_str(&text), &strict, "twice");
    buf_clear(&text);
}

static void only_an_object_will_do(void **state)
{
    (void)state;
    assert_refused_by(STR_LIT("[]"), &lax, "not an object");
    assert_refused_by(STR_LIT("\"x\""), &lax, "not an object");
    assert_refused_by(STR_LIT("1"), &lax, "not an object");
    assert_refused_by(STR_LIT("null"), &lax, "not an object");
    assert_accepted(STR_LIT(" {}"));
}

static void quoting_escapes_and_replaces(void **state)
{
    (void)state;
    json_quote(&seen, STR_LIT("a\"\\\n\x01\0\xff\xc3\xa9"));
    assert_seen("\"a\\\"\\\\\\n\\u0001\\u0000\xef\xbf\xbd\xc3\xa9\"");
    buf_reset(&seen);
    json_quote(&seen, STR_NONE);
    assert_seen("\"\"");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, before, after)

static void an_escaped_nul_may_be_allowed_where_nobody_looks(void **state)
{
    (void)state;
    const struct json_rules rules = { .nul_in_others = true };
    struct why why;
    assert_int_equal(scan(STR_LIT("{\"a\":\"x\",\"b\":\"\\u0000\"}"), &rules, "a", NULL, &why), OK);
    assert_int_equal(scan(STR_LIT("{\"a\":\"\\u0000\"}"), &rules, "a", NULL, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "NUL in a string"));
}

static void half_of_a_surrogate_pair_is_as_an_escaped_nul(void **state)
{
    (void)state;
    const struct json_rules rules = { .nul_in_others = true };
    static const char *const halves[] = { "\\ud800",        "\\udc00",  "\\ud83d\\u0041",
                                          "\\ud83d\\ud83d", "\\udbffx", "x\\uDFFF" };
    struct why why;
    char text[128];
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        snprintf(text, sizeof(text), "{\"b%s\":[\"%s\"],\"a\":\"x\"}", halves[i], halves[i]);
        assert_int_equal(scan(str_of(text), &rules, "a", NULL, &why), OK);
        assert_refused_by(str_of(text), &lax, "surrogate");
        snprintf(text, sizeof(text), "{\"a\":\"%s\"}", halves[i]);
        assert_int_equal(scan(str_of(text), &rules, "a", NULL, &why), ERR_REFUSE);
    }
    assert_accepted(STR_LIT("{\"a\":\"\\ud83d\\ude80\"}")); /* a whole pair */
}

static void free_text_has_a_replacement_character_in_its_place(void **state)
{
    (void)state;
    struct why why;
    bool has_nul = false;
    const struct json_rules rules = { .nul_in_others = true, .has_nul = &has_nul };
    const struct json_want want = { .path = "a", .found = note, .free_text = true };
    buf_reset(&seen);
    assert_int_equal(
        json_scan(STR_LIT("{\"a\":\"x\\u0000\\ud800y\"}"), &rules, &want, 1, NULL, &why), OK);
    assert_true(has_nul);
    assert_non_null(strstr(seen.ptr, "x\xef\xbf\xbd\xef\xbf\xbdy"));
    assert_int_equal(json_scan(STR_LIT("{\"a\":\"x\"}"), &rules, &want, 1, NULL, &why), OK);
    assert_false(has_nul);
}

static void nul_is_replaced_and_all_else_stays_byte_for_byte(void **state)
{
    (void)state;
    buf_reset(&seen);
    json_replace_nul(&seen,
                     STR_LIT("{\"a\\u0000\": \"\\\\u0000 \\ud83d\\ude80\\uD800\\u00e9\\udc00\"}"),
                     STR_LIT(""));
    assert_seen("{\"a\xEF\xBF\xBD"
                "000\": \"\\\\u0000 \\ud83d\\ude80\\u00e9\"}");
    buf_reset(&seen);
    json_replace_nul(&seen, STR_LIT("[\"\\u0000\"]"), STR_LIT("\\ufffd"));
    assert_seen("[\"\\ufffd\"]");
}

static bool keep(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    (void)want, (void)type, (void)index;
    *(struct str *)opaque = text;
    return true;
}

static void an_object_stays_where_it_is_in_the_input(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":{\"b\":\"\\ud800\\u0000\"},\"c\":[\"\\udc00\"]}";
    static const char *const paths[] = { "a", "c" };
    static const size_t at[] = { 5, 30 };
    struct why why;
    const struct json_rules rules = { .nul_in_others = true };
    for (size_t i = 0; i < 2; i++) {
        const struct json_want want = { .path = paths[i], .found = keep };
        struct str kept = STR_NONE;
        assert_int_equal(json_scan(str_of(text), &rules, &want, 1, &kept, &why), OK);
        assert_ptr_equal(kept.ptr, text + at[i]);
    }
}

static void names_that_differ_in_a_nul_stay_different(void **state)
{
    (void)state;
    const struct json_rules rules = { .nul_in_others = true, .reject_duplicates = true };
    struct why why;
    struct str text =
        STR_LIT("{\"a\":1,\"a\\u0000\":2,\"a\\ud800\" :3,\"a\\uD801\":{\"a\":\"\\u0000:\"}}");
    buf_reset(&seen);
    assert_int_equal(scan(text, &rules, "a", NULL, &why), OK);
    assert_seen("0:0:1\n");
    buf_reset(&seen);
    json_replace_nul(&seen, text, STR_LIT(""));
    assert_seen("{\"a\":1,\"a\xEF\xBF\xBD"
                "000\":2,\"a\xEF\xBF\xBD"
                "800\" :3,\"a\xEF\xBF\xBD"
                "801\":{\"a\":\":\"}}");
    static const char *const no_json[] = { "\"\\u0000", "\\u0000\"", "\"\\", "\"\"\\", "\\u00" };
    for (size_t i = 0; i < sizeof(no_json) / sizeof(no_json[0]); i++) {
        char *end = strdup(no_json[i]); /* ASan sees what is read behind it */
        json_replace_nul(&seen, str_of(end), STR_LIT(""));
        free(end);
    }
}

static void note_unknown(void *opaque, struct str object, struct str name)
{
    (void)opaque;
    buf_printf(&seen, "%.*s|%.*s\n", STR_ARG(object), STR_ARG(name));
}

static void what_nobody_asks_for_is_reported_where_somebody_asks(void **state)
{
    (void)state;
    const struct json_rules rules = { .unknown = note_unknown };
    const struct json_want wants[] = { { .path = "a.b", .found = note },
                                       { .path = "r[].n", .found = note } };
    struct why why;
    struct str text = STR_LIT("{\"a\":{\"b\":{\"c\":1},\"\\u0062b\":2},\"d\":{\"b\":3},"
                              "\"r\":[{\"n\":4,\"m\":5},6]}");
    assert_int_equal(json_scan(text, &rules, wants, 2, NULL, &why), OK);
    assert_seen("0:0:{\"c\":1}\na.|bb\n|d\n1:0:4\nr[].|m\n");
}

static void members_are_counted_over_all_objects(void **state)
{
    (void)state;
    const struct json_rules three = { .max_members = 3 };
    assert_refused_by(STR_LIT("{\"a\":{\"b\":1,\"c\":[{\"d\":1}]}}"), &three, "too many members");
    struct why why;
    assert_int_equal(
        json_scan(STR_LIT("{\"a\":{\"b\":1,\"c\":[1,2,3,4]}}"), &three, NULL, 0, NULL, &why), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(members_are_found_by_path),
        TEST(elements_are_found_with_their_index),
        TEST(whole_members_are_given_as_their_bytes),
        TEST(outermost_value_is_the_empty_path),
        TEST(member_and_its_own_members_can_both_be_wanted),
        TEST(numbers_are_given_as_written),
        TEST(false_ends_the_scan),
        TEST(malformed_text_is_refused),
        TEST(invalid_utf8_is_refused_wherever_it_lies),
        TEST(nul_is_refused_raw_and_escaped),
        TEST(half_a_surrogate_pair_is_refused),
        TEST(nesting_has_a_limit),
        TEST(name_twice_in_one_object_is_refused_on_request),
        TEST(name_twice_among_very_many_is_found),
        TEST(only_an_object_will_do),
        TEST(quoting_escapes_and_replaces),
        TEST(an_escaped_nul_may_be_allowed_where_nobody_looks),
        TEST(half_of_a_surrogate_pair_is_as_an_escaped_nul),
        TEST(free_text_has_a_replacement_character_in_its_place),
        TEST(nul_is_replaced_and_all_else_stays_byte_for_byte),
        TEST(an_object_stays_where_it_is_in_the_input),
        TEST(names_that_differ_in_a_nul_stay_different),
        TEST(what_nobody_asks_for_is_reported_where_somebody_asks),
        cmocka_unit_test(members_are_counted_over_all_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
