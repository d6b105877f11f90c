#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/demotions.h"

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    struct demotions *d = demotions_new(), *back = NULL;
    struct buf CLEANUP(buf_clear) text;
    struct why why = { "" };
    buf_init(&text, DEMOTIONS_MAX_BYTES);
    demotions_add(d, STR_LIT("Org/A"), STR_LIT("pass rate 85.0 %, \"at least\" 90 %"), 1000);
    demotions_add(d, STR_LIT("org/b"), STR_LIT(""), 2000);
    demotions_to_json(d, 3000, &text);
    assert_string_equal(text.ptr,
                        "{\"schema_version\":1,\"at\":\"1970-01-01T00:00:03.000Z\",\"demoted\":["
                        "{\"repo\":\"Org/A\",\"since\":\"1970-01-01T00:00:01.000Z\",\"reason\":"
                        "\"pass rate 85.0 %, \\\"at least\\\" 90 %\"},"
                        "{\"repo\":\"org/b\",\"since\":\"1970-01-01T00:00:02.000Z\",\"reason\":"
                        "\"\"}]}");
    assert_int_equal(demotions_from_json(buf_str(&text), &back, &why), OK);
    assert_int_equal(demotions_size(back), 2);
    assert_int_equal(demotions_find(back, STR_LIT("org/a"))->since_ms, 1000);
    assert_null(demotions_find(back, STR_LIT("org/c")));
    assert_true(demotions_equal(d, back));
    demotions_free(d);
    demotions_free(back);
}

static void lists_are_equal_when_they_name_the_same_repositories(void **state)
{
    (void)state;
    struct demotions *a = demotions_new(), *b = demotions_new();
    assert_true(demotions_equal(NULL, a));
    demotions_add(a, STR_LIT("org/a"), STR_LIT("one"), 1);
    assert_false(demotions_equal(a, b));
    demotions_add(b, STR_LIT("ORG/A"), STR_LIT("other"), 2);
    assert_true(demotions_equal(a, b));
    demotions_add(a, STR_LIT("org/b"), STR_LIT(""), 1);
    demotions_add(b, STR_LIT("org/c"), STR_LIT(""), 1);
    assert_false(demotions_equal(a, b));
    demotions_free(a);
    demotions_free(b);
}

static void a_record_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char before_1970[] = "{\"schema_version\":1,\"demoted\":[{\"repo\":\"org/a\","
                                      "\"since\":\"1969-12-31T00:00:00Z\"}]}";
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"schema_version\":2,\"demoted\":[]}",
        "{\"schema_version\":1,\"demoted\":{}}",
        "{\"schema_version\":1,\"demoted\":[\"org/a\"]}",
        "{\"schema_version\":1,\"demoted\":[{\"repo\":\"x\",\"since\":\"2026-01-01T00:00:00Z\"}]}",
        "{\"schema_version\":1,\"demoted\":[{\"repo\":\"org/a\",\"since\":\"yesterday\"}]}",
        before_1970,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct demotions *d = NULL;
        struct why why = { "" };
        assert_int_equal(demotions_from_json(str_of(bad[i]), &d, &why), ERR_REFUSE);
        assert_null(d);
        assert_string_not_equal(why.text, "");
    }
}

static void without_a_record_nobody_is_demoted(void **state)
{
    (void)state;
    assert_int_equal(demotions_size(NULL), 0);
    assert_null(demotions_find(NULL, STR_LIT("org/a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(lists_are_equal_when_they_name_the_same_repositories),
        cmocka_unit_test(a_record_that_is_none_is_refused),
        cmocka_unit_test(without_a_record_nobody_is_demoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
