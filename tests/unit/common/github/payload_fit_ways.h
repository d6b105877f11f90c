/* What payload_fit must keep, and ways to make a webhook too large for GitHub. The tests that
 * include it name cmocka, jansson and the system's headers before. */
#ifndef CRCR_TESTS_PAYLOAD_FIT_WAYS_H
#define CRCR_TESTS_PAYLOAD_FIT_WAYS_H

#include "common/github/payload_fit.h"
#include "common/model/limits.h"

/* The fields that workflows of downstreams read, named once more on purpose. */
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

static inline json_t *at(json_t *root, const char *path)
{
    struct str rest = str_of(path), name;
    while (root && str_split(&rest, '.', &name)) {
        char key[64];
        assert_true(str_copy(key, sizeof(key), name));
        root = json_object_get(root, key);
    }
    return root;
}

static inline json_t *fit(json_t *root, size_t flags, size_t max, json_t **trimmed)
{
    struct buf to, went;
    struct why why = { "" };
    char *text = json_dumps(root, flags);
    buf_init(&to, WEBHOOK_MAX_BYTES);
    buf_init(&went, 4096);
    if (payload_fit(str_of(text), max, &to, &went, &why))
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

static inline bool went(const json_t *trimmed, const char *path)
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

static inline void assert_protected(json_t *before, json_t *after, const char *what)
{
    for (size_t i = 0; i < sizeof(must_stay) / sizeof(must_stay[0]); i++) {
        json_t *old = at(before, must_stay[i]), *new = at(after, must_stay[i]);
        if (old ? !json_equal(old, new) : !!new)
            fail_msg("%s: %s changed", what, must_stay[i]);
    }
    json_t *old = at(before, "pull_request.labels"), *new = at(after, "pull_request.labels");
    assert_int_equal(json_array_size(old), json_array_size(new));
    for (size_t i = 0; i < json_array_size(old); i++)
        assert_true(json_equal(json_object_get(json_array_get(old, i), "name"),
                               json_object_get(json_array_get(new, i), "name")));
}

/* ---- ways to be too large ------------------------------------------------------------------- */

static inline json_t *text_of(const char *unit, size_t bytes)
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

static inline void as_it_is(json_t *root)
{
    (void)root;
}

static inline void long_body(json_t *root)
{
    json_t *owner = at(root, "pull_request") ? at(root, "pull_request") : root;
    json_object_set_new(owner, "body", text_of("é \"quoted\" \\ \n\x01 🎉", 70000));
}

static inline void many_links(json_t *root)
{
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof(name), "thing%d_url", i);
        json_object_set_new(at(root, "repository"), name, text_of("https://api.github.com/x", 90));
    }
}

static inline void many_people(json_t *root)
{
    json_t *people = json_array();
    for (int i = 0; i < 80; i++)
        json_array_append_new(people, json_deep_copy(at(root, "sender")));
    json_t *owner = at(root, "pull_request") ? at(root, "pull_request") : root;
    json_object_set_new(owner, "requested_reviewers", people);
}

static inline void many_labels(json_t *root)
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

static inline void put_commits(json_t *root, int n)
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

static inline void many_commits(json_t *root)
{
    put_commits(root, 90);
}

static inline void unheard_of(json_t *root)
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

static inline void everything(json_t *root)
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

static inline void each_payload(const char *kind, void (*check)(json_t *root, const char *what))
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

#endif
