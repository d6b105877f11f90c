#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <cmocka.h>

#include "common/github/check_runs.h"

static json_t *body_of(const struct check_run *run, bool create)
{
    struct buf body;
    buf_init(&body, 1 << 20);
    check_run_body(&body, run, create);
    json_t *document = json_loads(buf_str(&body).ptr, 0, NULL);
    assert_non_null(document);
    buf_clear(&body);
    return document;
}

static void a_new_one_names_itself_and_its_commit_an_update_does_not(void **state)
{
    (void)state;
    struct check_run run = { .name = STR_LIT("crcr/o/r/w/\"j\""),
                             .head_sha = STR_LIT("abc"),
                             .status = STR_LIT("queued") };
    json_t *created = body_of(&run, true), *updated = body_of(&run, false);
    assert_string_equal(json_string_value(json_object_get(created, "name")), "crcr/o/r/w/\"j\"");
    assert_string_equal(json_string_value(json_object_get(created, "head_sha")), "abc");
    assert_int_equal(json_object_size(updated), 1);
    json_decref(created);
    json_decref(updated);
}

static void what_is_empty_is_not_sent(void **state)
{
    (void)state;
    struct check_run run = { .status = STR_LIT("completed"),
                             .conclusion = STR_LIT(""),
                             .summary = STR_LIT("a summary needs a title") };
    json_t *body = body_of(&run, false);
    assert_int_equal(json_object_size(body), 1);
    json_decref(body);
}

static void a_long_summary_is_cut_at_a_character_and_says_so(void **state)
{
    (void)state;
    char *text = malloc(3 * 70000);
    for (size_t i = 0; i < 70000; i++)
        memcpy(text + 3 * i, "\xe2\x82\xac", 3);
    struct check_run run = { .title = STR_LIT("t"), .summary = { text, 3 * 65535 } };
    json_t *body = body_of(&run, false);
    const json_t *summary = json_object_get(json_object_get(body, "output"), "summary");
    assert_int_equal(json_string_length(summary), 3 * 65535); /* as long as GitHub takes: whole */
    json_decref(body);
    run.summary.len = 3 * 65536;
    body = body_of(&run, false);
    summary = json_object_get(json_object_get(body, "output"), "summary");
    assert_non_null(strstr(json_string_value(summary), "(cut)"));
    size_t characters = 0;
    for (const char *p = json_string_value(summary); *p; p++)
        characters += ((unsigned char)*p & 0xc0) != 0x80;
    assert_true(characters <= CHECK_RUN_TEXT_MAX && characters > CHECK_RUN_TEXT_MAX - 20);
    json_decref(body);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_one_names_itself_and_its_commit_an_update_does_not),
        cmocka_unit_test(what_is_empty_is_not_sent),
        cmocka_unit_test(a_long_summary_is_cut_at_a_character_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
