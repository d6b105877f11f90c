#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/allowlist_source.h"

#define NOW 1000000LL
#define TTL 900000LL

static struct allowlist *list_of(const char *yaml)
{
    struct allowlist *list;
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), NULL), OK);
    return list;
}

static enum allowlist_verdict judged(const char *old, const char *new, const char *held,
                                     int64_t held_for_ms)
{
    struct allowlist *in_force = old ? list_of(old) : NULL, *list = list_of(new);
    struct allowlist_candidate c = { .in_force = in_force,
                                     .list = list,
                                     .in_force_sha = old ? "old" : "",
                                     .sha = "new",
                                     .held_sha = held,
                                     .held_since_ms = NOW - held_for_ms };
    enum allowlist_verdict verdict = allowlist_classify(&c, NOW, TTL);
    allowlist_free(in_force);
    allowlist_free(list);
    return verdict;
}

static void the_first_one_is_published_even_when_empty(void **state)
{
    (void)state;
    assert_int_equal(judged(NULL, "", "", 0), ALLOWLIST_PUBLISH);
}

static void the_same_content_is_not_published_again(void **state)
{
    (void)state;
    struct allowlist *list = list_of("L1: [o/a]");
    struct allowlist_candidate c = {
        .in_force = list, .list = list, .in_force_sha = "x", .sha = "x", .held_sha = ""
    };
    assert_int_equal(allowlist_classify(&c, NOW, TTL), ALLOWLIST_SAME);
    allowlist_free(list);
}

static void losing_up_to_half_is_published_at_once(void **state)
{
    (void)state;
    assert_int_equal(judged("L1: [o/a, o/b, o/c, o/d]", "L1: [o/a, o/b]", "", 0),
                     ALLOWLIST_PUBLISH);
    assert_int_equal(judged("L1: [o/a]", "L1: [o/a, o/b]", "", 0), ALLOWLIST_PUBLISH);
}

static void losing_more_than_half_is_held_for_one_ttl(void **state)
{
    (void)state;
    const char *old = "L1: [o/a, o/b, o/c]", *new = "L1: [o/a, o/x, o/y, o/z]";
    assert_int_equal(judged(old, new, "", 0), ALLOWLIST_HOLD);
    assert_int_equal(judged(old, new, "new", TTL - 1), ALLOWLIST_HOLD);
    assert_int_equal(judged(old, new, "new", TTL), ALLOWLIST_PUBLISH);
    assert_int_equal(judged(old, new, "another", TTL), ALLOWLIST_HOLD);
}

static void providers_are_never_held(void **state)
{
    (void)state;
    struct allowlist_candidate c = { .in_force_sha = "x", .sha = "y", .held_sha = "" };
    assert_int_equal(allowlist_classify(&c, NOW, TTL), ALLOWLIST_PUBLISH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_is_published_even_when_empty),
        cmocka_unit_test(the_same_content_is_not_published_again),
        cmocka_unit_test(losing_up_to_half_is_published_at_once),
        cmocka_unit_test(losing_more_than_half_is_held_for_one_ttl),
        cmocka_unit_test(providers_are_never_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
