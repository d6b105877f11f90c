#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/mem.h"
#include "common/github/comments.h"

#define MARKER STR_LIT("<!-- m -->")

static int64_t found(const char *page, const char *app_id)
{
    char *CLEANUP(mem_free_char) body = NULL;
    int64_t id = -1;
    assert_true(comments_page_read(str_of(page), app_id, MARKER, &id, &body));
    return id;
}

static void the_first_comment_of_our_app_that_begins_with_the_marker_is_ours(void **state)
{
    (void)state;
    assert_int_equal(found("[{\"id\":1,\"body\":\"hello\",\"performed_via_github_app\":{\"id\":7}},"
                           "{\"id\":2,\"body\":\"<!-- m --> text\",\"performed_via_github_app\":"
                           "{\"id\":7}},"
                           "{\"id\":3,\"body\":\"<!-- m -->\",\"performed_via_github_app\":"
                           "{\"id\":7}}]",
                           "7"),
                     2);
}

static void the_marker_in_another_s_comment_means_nothing(void **state)
{
    (void)state;
    assert_int_equal(found("[{\"id\":1,\"body\":\"<!-- m -->\",\"performed_via_github_app\":null},"
                           "{\"id\":2,\"body\":\"<!-- m -->\"},"
                           "{\"id\":3,\"body\":\"<!-- m -->\",\"performed_via_github_app\":{}},"
                           "{\"id\":4,\"body\":\"<!-- m -->\",\"performed_via_github_app\":"
                           "{\"id\":8,\"client_id\":\"7\"}}]",
                           "7"),
                     0);
}

static void a_marker_that_is_quoted_is_none(void **state)
{
    (void)state;
    assert_int_equal(found("[{\"id\":1,\"body\":\"> <!-- m -->\",\"performed_via_github_app\":"
                           "{\"id\":7}}]",
                           "7"),
                     0);
}

static void an_app_that_is_configured_by_client_id_is_known_by_it(void **state)
{
    (void)state;
    const char *page = "[{\"id\":5,\"body\":\"<!-- m -->\",\"performed_via_github_app\":"
                       "{\"id\":7,\"client_id\":\"Iv1.a\"}}]";
    assert_int_equal(found(page, "Iv1.a"), 5);
    assert_int_equal(found(page, "Iv1.b"), 0);
}

static void nul_or_half_a_surrogate_pair_in_another_s_comment_hides_nothing(void **state)
{
    (void)state;
    static const char *const odd[] = { "\\u0000", "\\ud800", "\\udc00", "\\ud800\\u0041" };
    char page[512];
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(page, sizeof(page),
                 "[{\"id\":1,\"%s\":1,\"\":2,\"body\":\"%s<!-- m -->\","
                 "\"performed_via_github_app\":{\"id\":7}},"
                 "{\"id\":2,\"body\":\"<!-- m -->\",\"performed_via_github_app\":{\"id\":7}}]",
                 odd[i], odd[i]);
        assert_int_equal(found(page, "7"), 2);
    }
}

static void what_is_no_page_of_comments_is_told(void **state)
{
    (void)state;
    static const char *const pages[] = { "", "{}", "null", "[", "<html>" };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        char *body = NULL;
        int64_t id;
        assert_false(comments_page_read(str_of(pages[i]), "7", MARKER, &id, &body));
        assert_null(body);
    }
    assert_int_equal(found("[1, null, {\"id\":\"x\"}, {\"id\":-1,\"body\":\"<!-- m -->\"}]", "7"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_comment_of_our_app_that_begins_with_the_marker_is_ours),
        cmocka_unit_test(the_marker_in_another_s_comment_means_nothing),
        cmocka_unit_test(a_marker_that_is_quoted_is_none),
        cmocka_unit_test(an_app_that_is_configured_by_client_id_is_known_by_it),
        cmocka_unit_test(nul_or_half_a_surrogate_pair_in_another_s_comment_hides_nothing),
        cmocka_unit_test(what_is_no_page_of_comments_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
