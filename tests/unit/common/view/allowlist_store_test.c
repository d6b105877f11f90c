#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <cmocka.h>

#include "common/crypto/hmac.h"
#include "common/view/allowlist_feed.h"

#define PIPE "0191f7a4-1c2d-7e3f-8a4b-5c6d7e8f9a0b"

static struct allowlist_feed *store_new(void)
{
    struct allowlist_feed *s;
    struct why why;
    if (allowlist_feed_new(&s, NULL, NULL, NULL, NULL, &why))
        fail_msg("%s", why.text);
    return s;
}

static void apply(struct allowlist_feed *s, const char *key, const char *yaml)
{
    struct headers h;
    struct why why = { "" };
    headers_init(&h);
    headers_put(&h, "sha", STR_LIT("of another list"));
    headers_put(&h, "source", STR_LIT("https://example.org/allowlist.yml"));
    headers_put_i64(&h, "fetched_ms", 77);
    if (allowlist_feed_apply(s, str_of(key), str_of(yaml), &h, &why))
        fail_msg("refused: %s", why.text);
}

/* The sha is the text's, whatever the header says. */
static void assert_sha_of(const char *sha, const char *text)
{
    char hex[SHA256_HEX_SIZE];
    sha256_hex(str_of(text), hex);
    assert_string_equal(sha, hex);
}

static void before_the_first_record_there_is_no_list(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_non_null(v);
    assert_null(v->list);
    assert_null(v->providers);
    assert_string_equal(v->sha, "");
    allowlist_feed_release(s, v);
    allowlist_feed_free(s);
}

static void a_record_takes_force_with_what_is_known_of_it(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    apply(s, "allowlist", "L1: [org/a]");
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_int_equal(allowlist_size(v->list), 1);
    assert_sha_of(v->sha, "L1: [org/a]");
    assert_string_equal(v->source, "https://example.org/allowlist.yml");
    assert_int_equal(v->fetched_ms, 77);
    allowlist_feed_release(s, v);
    allowlist_feed_free(s);
}

static void each_file_changes_without_the_other(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    apply(s, "providers", "buildkite: {" PIPE "/" PIPE ": org/a}");
    apply(s, "allowlist", "L1: [org/a]");
    apply(s, "providers", "");
    apply(s, "something else", "anything");
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_int_equal(allowlist_size(v->list), 1);
    assert_int_equal(providers_size(v->providers), 0);
    assert_sha_of(v->sha, "L1: [org/a]");
    assert_sha_of(v->providers_sha, "");
    apply(s, "allowlist", "L1: [org/a, org/b]");
    const struct allowlist_version *w = allowlist_feed_get(s);
    assert_int_equal(allowlist_size(w->list), 2);
    assert_ptr_equal(w->providers, v->providers);
    assert_int_equal(w->providers_fetched_ms, 77);
    allowlist_feed_release(s, v);
    allowlist_feed_release(s, w);
    allowlist_feed_free(s);
}

#define DEMOTED(repo)                                                                              \
    "{\"schema_version\":1,\"demoted\":[{\"repo\":\"" repo                                         \
    "\",\"since\":\"2026-11-21T03:20:00Z\",\"reason\":\"slow\"}]}"

static void demotions_stand_next_to_the_list_and_outlive_its_versions(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    apply(s, "allowlist", "L3: {npu: {org/a: []}}");
    apply(s, "demotions", DEMOTED("org/a"));
    apply(s, "allowlist", "L2: [org/b]\nL3: {npu: {Org/A: []}}");
    apply(s, "providers", "");
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_sha_of(v->sha, "L2: [org/b]\nL3: {npu: {Org/A: []}}");
    assert_int_equal(allowlist_size(v->list), 2);
    assert_string_equal(allowlist_version_demotion(v, STR_LIT("org/A"))->reason, "slow");
    assert_null(allowlist_version_demotion(v, STR_LIT("org/b")));
    apply(s, "demotions", "{\"schema_version\":1,\"demoted\":[]}");
    const struct allowlist_version *w = allowlist_feed_get(s);
    assert_null(allowlist_version_demotion(w, STR_LIT("org/a")));
    assert_non_null(allowlist_version_demotion(v, STR_LIT("org/a"))); /* held */
    allowlist_feed_release(s, v);
    allowlist_feed_release(s, w);
    allowlist_feed_free(s);
}

static void only_a_repository_at_l3_is_demoted(void **state)
{
    (void)state;
    static const char *const lists[] = { "L2: [org/a]", "L4: [org/a]", "L1: [org/b]" };
    struct allowlist_feed *s = store_new();
    apply(s, "demotions", DEMOTED("org/a"));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        apply(s, "allowlist", lists[i]);
        const struct allowlist_version *v = allowlist_feed_get(s);
        assert_null(allowlist_version_demotion(v, STR_LIT("org/a")));
        allowlist_feed_release(s, v);
    }
    allowlist_feed_free(s);
}

static void demotions_that_cannot_be_read_change_nothing(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    struct headers h;
    struct why why = { "" };
    headers_init(&h);
    apply(s, "allowlist", "L3: {npu: {org/a: []}}");
    apply(s, "demotions", DEMOTED("org/a"));
    assert_int_equal(allowlist_feed_apply(s, STR_LIT("demotions"), STR_LIT("[]"), &h, &why),
                     ERR_REFUSE);
    assert_int_equal(allowlist_feed_apply(s, STR_LIT("demotions"), STR_NONE, &h, &why), ERR_REFUSE);
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_non_null(allowlist_version_demotion(v, STR_LIT("org/a")));
    allowlist_feed_release(s, v);
    allowlist_feed_free(s);
}

static void a_held_version_outlives_its_successors(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    apply(s, "allowlist", "L1: [org/a]");
    const struct allowlist_version *old = allowlist_feed_get(s);
    apply(s, "allowlist", "L1: [org/b]");
    apply(s, "allowlist", "L1: [org/c]");
    assert_non_null(allowlist_find(old->list, STR_LIT("org/a")));
    assert_sha_of(old->sha, "L1: [org/a]");
    allowlist_feed_release(s, old);
    allowlist_feed_free(s);
}

static void an_unreadable_record_leaves_the_last_good_one(void **state)
{
    (void)state;
    struct allowlist_feed *s = store_new();
    struct headers h;
    struct why why = { "" };
    headers_init(&h);
    apply(s, "allowlist", "L1: [org/a]");
    assert_int_equal(allowlist_feed_apply(s, STR_LIT("allowlist"), STR_LIT("L9: []"), &h, &why),
                     ERR_REFUSE);
    assert_non_null(strstr(why.text, "allowlist:1:1: "));
    assert_int_equal(allowlist_feed_apply(s, STR_LIT("allowlist"), STR_NONE, &h, &why), ERR_REFUSE);
    assert_int_equal(allowlist_feed_apply(s, STR_LIT("providers"), STR_LIT("[]"), &h, &why),
                     ERR_REFUSE);
    const struct allowlist_version *v = allowlist_feed_get(s);
    assert_sha_of(v->sha, "L1: [org/a]");
    assert_non_null(allowlist_find(v->list, STR_LIT("org/a")));
    allowlist_feed_release(s, v);
    allowlist_feed_free(s);
}

#define ODD "L1: [org/odd]"

struct readers {
    struct allowlist_feed *store;
    atomic_bool stop;
    atomic_int torn;
};

static void *read_all_the_time(void *opaque)
{
    struct readers *r = opaque;
    char odd_sha[SHA256_HEX_SIZE];
    sha256_hex(STR_LIT(ODD), odd_sha);
    while (!atomic_load(&r->stop)) {
        const struct allowlist_version *v = allowlist_feed_get(r->store);
        bool odd = v->list && allowlist_find(v->list, STR_LIT("org/odd"));
        if (v->list && odd != (strcmp(v->sha, odd_sha) == 0))
            atomic_fetch_add(&r->torn, 1);
        allowlist_feed_release(r->store, v);
    }
    return NULL;
}

static void readers_never_see_half_a_swap(void **state)
{
    (void)state;
    struct readers r = { .store = store_new() };
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all_the_time, &r), 0);
    for (int i = 0; i < 500; i++) {
        apply(r.store, "allowlist", ODD);
        apply(r.store, "providers", "");
        apply(r.store, "allowlist", "L1: [org/even]");
    }
    atomic_store(&r.stop, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&r.torn), 0);
    allowlist_feed_free(r.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_record_there_is_no_list),
        cmocka_unit_test(a_record_takes_force_with_what_is_known_of_it),
        cmocka_unit_test(each_file_changes_without_the_other),
        cmocka_unit_test(demotions_stand_next_to_the_list_and_outlive_its_versions),
        cmocka_unit_test(only_a_repository_at_l3_is_demoted),
        cmocka_unit_test(demotions_that_cannot_be_read_change_nothing),
        cmocka_unit_test(a_held_version_outlives_its_successors),
        cmocka_unit_test(an_unreadable_record_leaves_the_last_good_one),
        cmocka_unit_test(readers_never_see_half_a_swap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
