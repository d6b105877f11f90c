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

#include "common/github/payload_fit.h"
#include "common/model/limits.h"

#define MARKER "… [cut by crcr]"

/* The fields that workflows of downstreams read (behaviour.md, routing), told once more on purpose.
 */
static const char *const must_stay[] = {
    "action",
    "number",
    "after",
    "ref",
    "repository.full_name",
    "sender.login",
    "pull_request.number",
    "pull_request.title",
    "pull_request.html_url",
    "pull_request.draft",
    "pull_request.merged",
    "pull_request.user.login",
    "pull_request.head.ref",
    "pull_request.head.sha",
    "pull_request.head.label",
    "pull_request.head.repo.full_name",
    "pull_request.head.repo.clone_url",
    "pull_request.head.repo.html_url",
    "pull_request.base.ref",
    "pull_request.base.sha",
    "pull_request.base.label",
    "pull_request.base.repo.full_name",
    "pull_request.base.repo.clone_url",
    "pull_request.base.repo.html_url",
};

static json_t *at(json_t *root, const char *path)
{
    struct str rest = str_of(path), name;
    while (root && str_split(&rest, '.', &name)) {
        char key[64];
        assert_true(str_copy(key, sizeof(key), name));
        root = json_object_get(root, key);
    }
    return root;
}

static json_t *fit(json_t *root, size_t flags, size_t max, json_t **trimmed)
{
    struct buf to, went;
    struct why why = { "" };
    char *text = json_dumps(root, flags);
    buf_init(&to, WEBHOOK_MAX_BYTES);
    buf_init(&went, 4096);
    if (payload_fit(str_of(text), max, &to, &went, &why) != OK)
        fail_msg("refused: %s", why.text);
    assert_true(to.len <= max);
    assert_true(went.len <= 2048);
    if (strlen(text) <= max) {
        assert_string_equal(to.ptr, text);
        assert_int_equal(went.len, 0);
    }
    *trimmed = went.len ? json_loads(went.ptr, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (went.len)
        assert_true(json_array_size(*trimmed) > 0);
    json_t *fitted = json_loads(to.ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(fitted);
    free(text);
    buf_clear(&to);
    buf_clear(&went);
    return fitted;
}

static bool went(const json_t *trimmed, const char *path)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(trimmed, i, entry)
    {
        if (strcmp(json_string_value(entry), path) == 0)
            return true;
    }
    return false;
}

static void assert_protected(json_t *before, json_t *after, const json_t *trimmed, const char *what)
{
    for (size_t i = 0; i < sizeof(must_stay) / sizeof(must_stay[0]); i++) {
        json_t *old = at(before, must_stay[i]), *new = at(after, must_stay[i]);
        if (went(trimmed, must_stay[i])) {
            assert_string_equal(must_stay[i], "pull_request.title");
            continue;
        }
        if (old ? !json_equal(old, new) : new != NULL)
            fail_msg("%s: %s changed", what, must_stay[i]);
    }
    json_t *old = at(before, "pull_request.labels"), *new = at(after, "pull_request.labels");
    assert_int_equal(json_array_size(old), json_array_size(new));
    for (size_t i = 0; i < json_array_size(old); i++)
        assert_true(json_equal(json_object_get(json_array_get(old, i), "name"),
                               json_object_get(json_array_get(new, i), "name")));
}

/* ---- ways to be too large ------------------------------------------------------------------- */

static json_t *text_of(const char *unit, size_t bytes)
{
    size_t n = strlen(unit);
    char *text = malloc(bytes + n + 1);
    size_t len = 0;
    for (; len < bytes; len += n)
        memcpy(text + len, unit, n);
    json_t *json = json_stringn(text, len);
    free(text);
    return json;
}

static void as_it_is(json_t *root)
{
    (void)root;
}

static void long_body(json_t *root)
{
    json_t *owner = at(root, "pull_request") ? at(root, "pull_request") : root;
    json_object_set_new(owner, "body", text_of("é \"quoted\" \\ \n\x01 🎉", 70000));
}

static void many_links(json_t *root)
{
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof(name), "thing%d_url", i);
        json_object_set_new(at(root, "repository"), name, text_of("https://api.github.com/x", 90));
    }
}

static void many_people(json_t *root)
{
    json_t *people = json_array();
    for (int i = 0; i < 80; i++)
        json_array_append_new(people, json_deep_copy(at(root, "sender")));
    json_t *owner = at(root, "pull_request") ? at(root, "pull_request") : root;
    json_object_set_new(owner, "requested_reviewers", people);
}

static void many_labels(json_t *root)
{
    json_t *labels = json_array();
    for (int i = 0; i < 60; i++)
        json_array_append_new(labels,
                              json_pack("{s:i, s:o, s:o}", "id", i, "name", text_of("label/x ", 48),
                                        "description", text_of("about ", 2000)));
    if (at(root, "pull_request"))
        json_object_set_new(at(root, "pull_request"), "labels", labels);
    else
        json_decref(labels);
}

static void put_commits(json_t *root, int n)
{
    json_t *commits = json_array();
    for (int i = 0; i < n; i++) {
        json_t *files = json_array();
        for (int j = 0; j < 8; j++)
            json_array_append_new(files, json_sprintf("torch/csrc/file-%d.cpp", j));
        json_array_append_new(commits,
                              json_pack("{s:o, s:o, s:o}", "id", json_sprintf("%040d", i),
                                        "message", text_of("why ", 700), "modified", files));
    }
    json_object_set_new(root, "commits", commits);
}

static void many_commits(json_t *root)
{
    put_commits(root, 90);
}

static void unheard_of(json_t *root)
{
    json_t *deep = json_object(), *strings = json_array();
    for (int i = 0; i < 50; i++)
        deep = json_pack("{s:o, s:o}", "pull_request", deep, "text", text_of("x", 1500));
    for (int i = 0; i < 3; i++)
        json_array_append_new(strings, text_of("y", 20000));
    json_object_set_new(root, "news", deep);
    json_object_set_new(root, "strings", strings);
    json_object_set_new(root, "nested", json_pack("[[o]]", text_of("z", 30000)));
}

static void everything(json_t *root)
{
    long_body(root);
    many_links(root);
    many_people(root);
    many_labels(root);
    many_commits(root);
    unheard_of(root);
}

static const struct {
    const char *name;
    void (*apply)(json_t *root);
} inflations[] = {
    { "as it is", as_it_is },       { "long body", long_body },
    { "many links", many_links },   { "many people", many_people },
    { "many labels", many_labels }, { "many commits", many_commits },
    { "unheard of", unheard_of },   { "everything", everything },
};

static void each_payload(const char *kind, void (*check)(json_t *root, const char *what))
{
    char folder[512], path[1024];
    snprintf(folder, sizeof(folder), "%s/tests/payloads/%s", SOURCE_DIR, kind);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!str_ends(str_of(entry->d_name), ".json"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        json_t *root = json_load_file(path, 0, NULL);
        assert_non_null(root);
        check(root, entry->d_name);
        json_decref(root);
        n++;
    }
    closedir(dir);
    assert_true(n > 0);
}

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
            assert_protected(large, fitted, trimmed, name);
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

static void a_huge_title_is_cut_last(void **state)
{
    (void)state;
    json_t *root = payload("pull_request/opened.json"), *trimmed;
    json_object_set_new(at(root, "pull_request"), "title", text_of("t", 70000));
    json_t *fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    assert_true(went(trimmed, "pull_request.title") && went(trimmed, "*"));
    assert_int_equal(json_string_length(at(fitted, "pull_request.title")), 1024 + strlen(MARKER));
    assert_protected(root, fitted, trimmed, "huge title");
    json_decref(trimmed);
    json_decref(fitted);

    json_object_set_new(at(root, "pull_request"), "title", text_of("t", 50000));
    fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    assert_false(went(trimmed, "pull_request.title"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_workflows_read_stays_however_large_a_pull_request_gets),
        cmocka_unit_test(what_workflows_read_stays_however_large_a_push_gets),
        cmocka_unit_test(what_fits_goes_byte_for_byte),
        cmocka_unit_test(blanks_go_before_anything_else),
        cmocka_unit_test(api_links_go_first_and_alone_when_that_suffices),
        cmocka_unit_test(then_long_bodies_are_cut_with_a_marker),
        cmocka_unit_test(then_repositories_and_people_are_reduced),
        cmocka_unit_test(then_lists_are_cut_and_the_newest_commits_stay),
        cmocka_unit_test(a_list_of_texts_ends_with_how_many_went),
        cmocka_unit_test(a_huge_title_is_cut_last),
        cmocka_unit_test(the_repository_of_a_deleted_fork_stays_null),
        cmocka_unit_test(what_cannot_be_spliced_into_json_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(protected_fields_that_are_too_large_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
