#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/model/topics.h"

static void every_topic_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < TOPIC_COUNT; i++) {
        assert_non_null(topic_base_name((enum topic)i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(topic_base_name((enum topic)i), topic_base_name((enum topic)j));
    }
}

static void names_carry_the_prefix_and_are_found_again(void **state)
{
    (void)state;
    struct topics t;
    assert_int_equal(topics_init(&t, "crcr.", NULL), OK);
    assert_string_equal(t.name[TOPIC_EVENTS], "crcr.events");
    assert_string_equal(t.name[TOPIC_DISPATCH_L4], "crcr.dispatch.l4");
    for (int i = 0; i < TOPIC_COUNT; i++)
        assert_int_equal(topics_find(&t, str_of(t.name[i])), i);
    assert_int_equal(topics_find(&t, STR_LIT("events")), TOPIC_COUNT);
    assert_int_equal(topics_find(&t, STR_LIT("crcr.eventsx")), TOPIC_COUNT);
}

static void redis_keys_carry_the_prefix(void **state)
{
    static const char *const cases[][2] = {
        { "crcr.", "crcr:" }, { "staging.", "staging:" },
        { "a.b.", "a.b:" },   { "staging", "staging:" },
        { "x_", "x_:" },      { "x..", "x.:" },
        { "", "crcr:" },      { ".", "crcr:" },
    };
    (void)state;
    struct topics t;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(topics_init(&t, cases[i][0], NULL), OK);
        assert_string_equal(t.key_prefix, cases[i][1]);
    }
}

static void groups_carry_the_prefix_and_are_found_by_the_default_names_too(void **state)
{
    static const char *const of_default[] = { "crcr-router", "crcr-l1",        "crcr-l2",
                                              "crcr-l3",     "crcr-l4",        "crcr-delay",
                                              "crcr-fold",   "crcr-reconcile", "crcr-forward" };
    static const struct {
        const char *prefix, *router;
    } cases[] = {
        { "crcr.", "crcr-router" }, { "staging.", "staging-router" },
        { "a.b.", "a.b-router" },   { "x_", "x_-router" },
        { "", "crcr-router" },      { ".", "crcr-router" },
    };
    (void)state;
    struct topics t;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(topics_init(&t, cases[i].prefix, NULL), OK);
        assert_string_equal(t.group[GROUP_ROUTER], cases[i].router);
        for (int j = 0; j < GROUP_COUNT; j++) {
            assert_int_equal(topics_find_group(&t, str_of(t.group[j])), j);
            assert_int_equal(topics_find_group(&t, str_of(of_default[j])), j);
        }
        assert_int_equal(topics_find_group(&t, STR_LIT("router")), GROUP_COUNT);
        assert_int_equal(topics_find_group(&t, STR_LIT("crcr-")), GROUP_COUNT);
        assert_int_equal(topics_find_group(&t, STR_LIT("")), GROUP_COUNT);
    }
    for (int level = 1; level <= 4; level++)
        assert_int_equal(group_of_tier(level), GROUP_L1 + level - 1);
}

static void the_prefix_may_be_empty(void **state)
{
    (void)state;
    struct topics t;
    assert_int_equal(topics_init(&t, "", NULL), OK);
    assert_string_equal(t.name[TOPIC_DLQ], "dlq");
}

static void a_prefix_that_kafka_would_refuse_is_refused(void **state)
{
    (void)state;
    struct topics t;
    struct why why;
    char prefix[200];
    assert_int_equal(topics_init(&t, "a b", &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "a b"));
    assert_int_equal(topics_init(&t, "a/", &why), ERR_REFUSE);

    memset(prefix, 'x', sizeof(prefix));
    prefix[84] = '\0';
    assert_int_equal(topics_init(&t, prefix, &why), OK);
    assert_int_equal(strlen(t.name[TOPIC_DISPATCH_L1]), 95);
    prefix[84] = 'x';
    prefix[85] = '\0';
    assert_int_equal(topics_init(&t, prefix, &why), ERR_REFUSE);
}

static void tiers_map_to_their_topics(void **state)
{
    (void)state;
    assert_int_equal(topic_of_tier(1), TOPIC_DISPATCH_L1);
    assert_int_equal(topic_of_tier(4), TOPIC_DISPATCH_L4);
}

static void what_is_put_off_has_a_place_of_its_own_and_l4_shares_last(void **state)
{
    (void)state;
    assert_int_equal(topic_delay_place(TOPIC_DISPATCH_L4), 1);
    assert_int_equal(topic_delay_place(TOPIC_DISPATCH_L3), 2);
    assert_int_equal(topic_delay_place(TOPIC_DISPATCH_L2), 3);
    assert_int_equal(topic_delay_place(TOPIC_DISPATCH_L1), 4);
    assert_int_equal(topic_delay_place(TOPIC_CALLBACKS), 1);
    assert_int_equal(topic_delay_place(TOPIC_RECONCILE), 2);
    assert_int_equal(topic_delay_place(TOPIC_DLQ), 0);
    assert_int_equal(topic_delay_place(TOPIC_COUNT), 0);
}

static void only_from_a_topic_of_the_dispatchers_own_a_task_comes_back(void **state)
{
    (void)state;
    for (int to = 0; to <= TOPIC_COUNT; to++) {
        bool is_task = to >= TOPIC_DISPATCH_L1 && to <= TOPIC_DISPATCH_L4;
        bool is_reporters = to == TOPIC_CALLBACKS || to == TOPIC_RECONCILE;
        for (int i = TOPIC_DELAY_10S; i <= TOPIC_DELAY_1H; i++)
            assert_int_equal(topic_delay_may((enum topic)i, (enum topic)to),
                             is_task || is_reporters);
        for (int i = TOPIC_RDELAY_1M; i <= TOPIC_RDELAY_1H; i++)
            assert_int_equal(topic_delay_may((enum topic)i, (enum topic)to), is_reporters);
    }
    for (int i = 0; i <= TOPIC_COUNT; i++)
        assert_int_equal(topic_is_delay((enum topic)i),
                         i < TOPIC_COUNT && strstr(topic_base_name((enum topic)i), "delay."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_topic_has_a_name_of_its_own),
        cmocka_unit_test(names_carry_the_prefix_and_are_found_again),
        cmocka_unit_test(redis_keys_carry_the_prefix),
        cmocka_unit_test(groups_carry_the_prefix_and_are_found_by_the_default_names_too),
        cmocka_unit_test(the_prefix_may_be_empty),
        cmocka_unit_test(a_prefix_that_kafka_would_refuse_is_refused),
        cmocka_unit_test(tiers_map_to_their_topics),
        cmocka_unit_test(what_is_put_off_has_a_place_of_its_own_and_l4_shares_last),
        cmocka_unit_test(only_from_a_topic_of_the_dispatchers_own_a_task_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
