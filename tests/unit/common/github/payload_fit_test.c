#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "payload_fit_ways.h"

#define MARKER "… [cut by crcr]"

static void check_all_ways(json_t *root, const char *what)
{
    static const size_t limits[] = { PAYLOAD_MAX_BYTES, 9000 };
    for (size_t i = 0; i < sizeof(inflations) / sizeof(inflations[0]); i++) {
        json_t *large = json_deep_copy(root);
        inflations[i].apply(large);
        for (size_t j = 0; j < sizeof(limits) / sizeof(limits[0]); j++) {
            char name[256];
            json_t *trimmed;
            json_t *fitted = fit(large, JSON_COMPACT, limits[j], &trimmed);
            snprintf(name, sizeof(name), "%s, %s, %zu", what, inflations[i].name, limits[j]);
            assert_protected(large, fitted, name);
            json_decref(fitted);
            json_decref(trimmed);
        }
        json_decref(large);
    }
}

static void what_workflows_read_stays_however_large_a_pull_request_gets(void **state)
{
    (void)state;
    each_payload("pull_request", check_all_ways);
}

static void what_workflows_read_stays_however_large_a_push_gets(void **state)
{
    (void)state;
    each_payload("push", check_all_ways);
}

static json_t *payload(const char *path)
{
    char file[512];
    snprintf(file, sizeof(file), "%s/tests/payloads/%s", SOURCE_DIR, path);
    json_t *root = json_load_file(file, 0, NULL);
    assert_non_null(root);
    return root;
}

/* ---- the order of dropping ------------------------------------------------------------------ */

static void what_fits_goes_byte_for_byte(void **state)
{
    (void)state;
    struct buf to, trimmed;
    static const char odd[] = " { \"a\" : 1.0e2 , \"\\u00e9\":\"\\/\" }\n";
    buf_init(&to, 1000);
    buf_init(&trimmed, 1000);
    assert_int_equal(payload_fit(str_of(odd), sizeof(odd) - 1, &to, &trimmed, NULL), OK);
    assert_string_equal(to.ptr, odd);
    assert_int_equal(trimmed.len, 0);
    buf_clear(&to);
    buf_clear(&trimmed);
}

static void nul_and_halves_of_surrogate_pairs_go_and_nothing_else(void **state)
{
    (void)state;
    struct buf to, trimmed;
    static const char body[] =
        " {\"a\" : \"x\\u0000y \\\\u0000\", \"\\ud800b\":[\"\\udc00\\ud83d\\ude80\"]}";
    buf_init(&to, 1000);
    buf_init(&trimmed, 1000);
    assert_int_equal(payload_fit(str_of(body), sizeof(body) - 1, &to, &trimmed, NULL), OK);
    assert_string_equal(to.ptr, " {\"a\" : \"xy \\\\u0000\", \"\xEF\xBF\xBD"
                                "800b\":[\"\\ud83d\\ude80\"]}");
    assert_int_equal(trimmed.len, 0);
    buf_clear(&to);
    buf_clear(&trimmed);
}

static void blanks_go_before_anything_else(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    char *compact = json_dumps(root, JSON_COMPACT);
    json_t *fitted = fit(root, JSON_INDENT(8), strlen(compact), &trimmed);
    assert_true(json_equal(root, fitted));
    assert_null(trimmed);
    free(compact);
    json_decref(fitted);
    json_decref(root);
}

static void api_links_go_first_and_alone_when_that_suffices(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_t *fitted = fit(root, JSON_COMPACT, 15000, &trimmed);
    assert_int_equal(json_array_size(trimmed), 2);
    assert_true(went(trimmed, "_links") && went(trimmed, "*_url"));
    assert_null(at(fitted, "pull_request._links"));
    assert_null(at(fitted, "repository.archive_url"));
    assert_null(at(fitted, "sender.avatar_url"));
    assert_non_null(at(fitted, "repository.html_url"));
    assert_non_null(at(fitted, "pull_request.diff_url"));
    assert_true(json_equal(at(root, "pull_request.body"), at(fitted, "pull_request.body")));
    assert_non_null(at(fitted, "repository.owner.node_id"));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void a_long_body_stays_when_the_links_suffice(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request"), "body", text_of("x", 10000));
    json_t *fitted = fit(root, JSON_COMPACT, 25000, &trimmed);
    assert_int_equal(json_array_size(trimmed), 2);
    assert_true(went(trimmed, "_links") && went(trimmed, "*_url"));
    assert_true(json_equal(at(root, "pull_request.body"), at(fitted, "pull_request.body")));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void then_long_bodies_are_cut_with_a_marker(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request"), "body", text_of("é", 100001));
    json_t *fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    const char *body = json_string_value(at(fitted, "pull_request.body"));
    assert_int_equal(strlen(body), 8192 + strlen(MARKER));
    assert_true(str_ends(str_of(body), MARKER));
    assert_true(went(trimmed, "pull_request.body"));
    assert_non_null(at(fitted, "repository.owner.node_id"));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void then_repositories_and_people_are_reduced(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_t *fitted = fit(root, JSON_COMPACT, 5000, &trimmed);
    assert_true(went(trimmed, "pull_request.head.repo") && went(trimmed, "sender"));
    assert_null(at(fitted, "sender.node_id"));
    assert_non_null(at(fitted, "sender.login"));
    assert_null(at(fitted, "repository.watchers"));
    assert_non_null(at(fitted, "repository.owner.login"));
    assert_non_null(at(fitted, "pull_request.head.repo.default_branch"));
    assert_non_null(at(fitted, "pull_request.created_at"));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void what_workflows_read_stays_in_what_looks_like_a_repository_or_a_person(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request"), "login", json_string("l"));
    json_object_set_new(at(root, "pull_request.head"), "full_name", json_string("f"));
    json_t *fitted = fit(root, JSON_COMPACT, 5000, &trimmed);
    assert_true(went(trimmed, "pull_request") && !went(trimmed, "*"));
    assert_null(at(fitted, "pull_request.created_at"));
    assert_true(json_equal(at(fitted, "pull_request.head.sha"), at(root, "pull_request.head.sha")));
    assert_non_null(at(fitted, "pull_request.head.repo.default_branch"));
    assert_non_null(at(fitted, "pull_request.updated_at"));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void then_lists_are_cut_and_the_newest_commits_stay(void **state)
{
    (void)state;
    json_t *root = payload("push/1.json"), *trimmed;
    put_commits(root, 2048);
    json_t *fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    json_t *commits = at(fitted, "commits");
    size_t n = json_array_size(commits);
    assert_true(n >= 20 && n <= 100);
    const json_t *last = json_array_get(commits, n - 1);
    assert_string_equal(json_string_value(json_object_get(last, "id")),
                        "0000000000000000000000000000000000002047");
    assert_int_equal(json_integer_value(at(fitted, "commits_cut")), 2048 - n);
    assert_true(went(trimmed, "commits"));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void a_list_of_texts_ends_with_how_many_went(void **state)
{
    (void)state;
    json_t *trimmed, *list = json_array();
    for (int i = 0; i < 150; i++)
        json_array_append_new(list, json_string("name"));
    json_t *root = json_pack("{s:o, s:s}", "topics", list, "ref", "r");
    json_t *fitted = fit(root, JSON_COMPACT, 800, &trimmed);
    const json_t *topics = at(fitted, "topics");
    assert_int_equal(json_array_size(topics), 101);
    assert_string_equal(json_string_value(json_array_get(topics, 100)), "… 50 more [cut by crcr]");
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

static void the_repository_of_a_deleted_fork_stays_null(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request.head"), "repo", json_null());
    everything(root);
    json_t *fitted = fit(root, JSON_COMPACT, 9000, &trimmed);
    assert_true(json_is_null(at(fitted, "pull_request.head.repo")));
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void assert_refused(struct str body, size_t max, const char *holds)
{
    struct buf to, trimmed;
    struct why why = { "" };
    buf_init(&to, WEBHOOK_MAX_BYTES);
    buf_init(&trimmed, 4096);
    assert_int_equal(payload_fit(body, max, &to, &trimmed, &why), ERR_REFUSE);
    if (!strstr(why.text, holds))
        fail_msg("the reason is \"%s\", wanted \"%s\"", why.text, holds);
    assert_int_equal(to.len, 0);
    assert_int_equal(trimmed.len, 0);
    buf_clear(&to);
    buf_clear(&trimmed);
}

static void what_cannot_be_spliced_into_json_is_refused(void **state)
{
    (void)state;
    assert_refused(STR_LIT(""), 100, "payload");
    assert_refused(STR_LIT("[]"), 100, "object");
    assert_refused(STR_LIT("{\"a\":1"), 100, "JSON");
    assert_refused(STR_LIT("{}},\"callback_token\":{"), 100, "JSON");
    assert_refused(STR_LIT("{\"a\":\"\xff\"}"), 100, "UTF-8");
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static char deep[200001];
    memset(deep, '[', sizeof(deep) - 1);
    memcpy(deep, "{\"a\":", 5);
    assert_refused(str_of(deep), 1000, "nested");
}

static void protected_fields_that_are_too_large_are_refused(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json");
    json_object_set_new(at(root, "pull_request.head"), "ref", text_of("r", 60000));
    char *text = json_dumps(root, JSON_COMPACT);
    assert_refused(str_of(text), PAYLOAD_MAX_BYTES, "must stay");
    free(text);
    json_decref(root);
}

static void a_title_is_never_cut(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request"), "title", text_of("t", 50000));
    json_t *fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    assert_protected(root, fitted, "a long title");
    json_decref(trimmed);
    json_decref(fitted);

    json_object_set_new(at(root, "pull_request"), "title", text_of("t", 70000));
    char *text = json_dumps(root, JSON_COMPACT);
    assert_refused(str_of(text), PAYLOAD_MAX_BYTES, "must stay");
    free(text);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_workflows_read_stays_however_large_a_pull_request_gets),
        cmocka_unit_test(what_workflows_read_stays_however_large_a_push_gets),
        cmocka_unit_test(what_fits_goes_byte_for_byte),
        cmocka_unit_test(nul_and_halves_of_surrogate_pairs_go_and_nothing_else),
        cmocka_unit_test(blanks_go_before_anything_else),
        cmocka_unit_test(api_links_go_first_and_alone_when_that_suffices),
        cmocka_unit_test(a_long_body_stays_when_the_links_suffice),
        cmocka_unit_test(then_long_bodies_are_cut_with_a_marker),
        cmocka_unit_test(then_repositories_and_people_are_reduced),
        cmocka_unit_test(what_workflows_read_stays_in_what_looks_like_a_repository_or_a_person),
        cmocka_unit_test(then_lists_are_cut_and_the_newest_commits_stay),
        cmocka_unit_test(a_list_of_texts_ends_with_how_many_went),
        cmocka_unit_test(the_repository_of_a_deleted_fork_stays_null),
        cmocka_unit_test(what_cannot_be_spliced_into_json_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(protected_fields_that_are_too_large_are_refused),
        cmocka_unit_test(a_title_is_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
