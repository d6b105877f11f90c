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

/* Whatever a webhook is made of, the output is valid JSON, has at most 59 KB, and keeps
 * every protected field. Rounds are made from a fixed seed, which a failure names. */
#define SEED   20261121u
#define ROUNDS 16

static uint32_t chance_state;

static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * below) >> 32);
}

/* Objects, lists, texts and numbers of any shape, at most that deep. */
static json_t *anything(int depth)
{
    static const char *const units[] = { "x", "é", "🎉", "\"", "\\", "\n", "</script>", "\x01" };
    json_t *made;
    switch (chance(depth > 0 ? 6 : 4)) {
    case 0:
        return json_integer((json_int_t)chance(UINT32_MAX) - 1000);
    case 1:
        return text_of(units[chance(8)], chance(3000));
    case 2:
        return json_null();
    case 3:
        return json_real(chance(1000000) / 7.0);
    case 4:
        made = json_array();
        for (uint32_t i = chance(20); i > 0; i--)
            json_array_append_new(made, anything(depth - 1));
        return made;
    default:
        made = json_object();
        for (uint32_t i = chance(20); i > 0; i--) {
            static const char *const names[] = { "body", "url",   "x_url", "_links", "repo",
                                                 "user", "owner", "login", "labels", "message" };
            json_object_set_new(made, names[chance(10)], anything(depth - 1));
        }
        return made;
    }
}

/* New members, and other values for old ones that no workflow reads, anywhere but in what is kept.
 */
static void scatter(json_t *root)
{
    static const char *const owners[] = { "", "pull_request", "repository", "sender",
                                          "head_commit" };
    for (uint32_t i = chance(30); i > 0; i--) {
        const char *path = owners[chance(5)];
        json_t *owner = *path ? at(root, path) : root;
        char name[32];
        snprintf(name, sizeof(name), "new%u%s", chance(40), chance(2) ? "_url" : "");
        if (json_is_object(owner))
            json_object_set_new(owner, name, anything(5));
    }
}

static char *fit_bytes(const json_t *root, size_t max)
{
    struct buf to, trimmed;
    char *text = json_dumps(root, JSON_COMPACT);
    buf_init(&to, WEBHOOK_MAX_BYTES);
    buf_init(&trimmed, 4096);
    assert_int_equal(payload_fit(str_of(text), max, &to, &trimmed, NULL), OK);
    free(text);
    buf_clear(&trimmed);
    return buf_take(&to, NULL);
}

static void assert_scalars_kept(json_t *before, json_t *after, const char *path)
{
    const char *name;
    json_t *value;
    json_object_foreach(at(before, path), name, value)
    {
        if (!json_is_object(value) && !json_is_array(value) &&
            !json_equal(value, json_object_get(at(after, path), name)))
            fail_msg("%s.%s changed", path, name);
    }
}

static void one_round(const char *file, unsigned round)
{
    char path[512], what[128];
    json_t *trimmed;
    snprintf(path, sizeof(path), "%s/tests/payloads/%s", SOURCE_DIR, file);
    json_t *root = json_load_file(path, 0, NULL);
    size_t limit = chance(2) ? PAYLOAD_MAX_BYTES : 9000 + chance(PAYLOAD_MAX_BYTES - 9000);
    for (size_t i = 0; i < sizeof(inflations) / sizeof(inflations[0]) - 1; i++)
        if (chance(2))
            inflations[i].apply(root);
    scatter(root);
    snprintf(what, sizeof(what), "seed %u, round %u, %s", SEED, round, file);
    json_t *fitted = fit(root, JSON_COMPACT, limit, &trimmed);
    assert_protected(root, fitted, what);
    assert_scalars_kept(root, fitted, "pull_request.head");
    assert_scalars_kept(root, fitted, "pull_request.base");

    char *first = fit_bytes(root, limit), *again = fit_bytes(root, limit);
    assert_string_equal(first, again); /* the same webhook gives the same dispatch */
    char *twice = fit_bytes(fitted, limit);
    json_t *refitted = json_loads(twice, 0, NULL);
    assert_true(json_equal(fitted, refitted)); /* what was fitted stays as it is */
    free(first);
    free(again);
    free(twice);
    json_decref(refitted);
    json_decref(fitted);
    json_decref(trimmed);
    json_decref(root);
}

static void any_webhook_fits_as_json_with_every_protected_field(void **state)
{
    static const char *const files[] = { "pull_request/opened.json",
                                         "pull_request/synchronize.json",
                                         "pull_request/labeled.json", "push/1.json" };
    (void)state;
    chance_state = SEED;
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(files[chance(4)], round);
}

static void a_pull_request_of_25_mib_fits(void **state)
{
    (void)state;
    char path[512];
    json_t *trimmed;
    snprintf(path, sizeof(path), "%s/tests/payloads/pull_request/opened.json", SOURCE_DIR);
    json_t *root = json_load_file(path, 0, NULL), *people = json_array(), *labels = json_array();
    for (int i = 0; i < 3000; i++)
        json_array_append(people, at(root, "sender"));
    for (int i = 0; i < 1500; i++)
        json_array_append_new(labels, json_pack("{s:i, s:o, s:s}", "id", i, "name",
                                                json_sprintf("l-%d", i), "color", "ffffff"));
    json_object_set_new(at(root, "pull_request"), "requested_reviewers", people);
    json_object_set_new(at(root, "pull_request"), "labels", labels);
    json_object_set_new(at(root, "pull_request"), "body", text_of("0123456789abcdef", 22u << 20));
    json_t *fitted = fit(root, JSON_COMPACT, PAYLOAD_MAX_BYTES, &trimmed);
    assert_protected(root, fitted, "25 MiB");
    json_decref(trimmed);
    json_decref(fitted);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_webhook_fits_as_json_with_every_protected_field),
        cmocka_unit_test(a_pull_request_of_25_mib_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
