#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/io/topic_spec.h"
#include "common/model/topics.h"

static void refused(const char *text, const char *expected)
{
    struct topic_specs specs;
    struct why why;

    assert_int_equal(topic_specs_parse(&specs, "t", str_of(text), &why), ERR_REFUSE);
    assert_string_equal(why.text, expected);
}

static void values_with_units_become_what_kafka_takes(void **state)
{
    struct topic_specs specs;
    struct why why;

    (void)state;
    assert_int_equal(
        topic_specs_parse(&specs, "t",
                          STR_LIT("default retention.ms=7d segment.ms=36h # all\n"
                                  "\n"
                                  "a.b  12 max.message.bytes=26MiB\n"
                                  "c 1\tretention.ms=-1 cleanup.policy=compact,delete"),
                          &why),
        OK);
    assert_int_equal(specs.n, 2);
    assert_string_equal(specs.at[0].name, "a.b");
    assert_int_equal(specs.at[0].partitions, 12);
    assert_string_equal(topic_spec_config(&specs.at[0], "retention.ms"), "604800000");
    assert_string_equal(topic_spec_config(&specs.at[0], "segment.ms"), "129600000");
    assert_string_equal(topic_spec_config(&specs.at[0], "max.message.bytes"), "27262976");
    assert_string_equal(topic_spec_config(&specs.at[1], "retention.ms"), "-1");
    assert_string_equal(topic_spec_config(&specs.at[1], "cleanup.policy"), "compact,delete");
    assert_null(topic_spec_config(&specs.at[1], "max.message.bytes"));
    topic_specs_clear(&specs);
}

static void faults_are_named_with_line_and_column(void **state)
{
    (void)state;
    refused("", "t:1:1: no topics");
    refused("a 1\n  b x", "t:2:5: partitions is no number from 1 to 10000: \"x\"");
    refused("a", "t:1:2: partitions is no number from 1 to 10000: \"\"");
    refused("a 0", "t:1:3: partitions is no number from 1 to 10000: \"0\"");
    refused("a 1\nb 1\na 2", "t:3:1: topic is listed twice: \"a\"");
    refused("a/b 1", "t:1:1: a topic name has at most 95 of A-Z a-z 0-9 . _ -: \"a/b\"");
    refused("a 1 retention.ms", "t:1:5: not <config>=<value>: \"retention.ms\"");
    refused("a 1 =1", "t:1:5: not <config>=<value>: \"=1\"");
    refused("a 1 retention.ms=7x",
            "t:1:18: value is empty, too long, or no number with a known unit: \"7x\"");
    refused("a 1 retention.ms=",
            "t:1:18: value is empty, too long, or no number with a known unit: \"\"");
    refused("a 1 retention.ms=99999999999999999999d",
            "t:1:18: value is empty, too long, or no number with a known unit: "
            "\"99999999999999999999d\"");
}

static void the_committed_file_and_the_topics_of_the_code_are_the_same(void **state)
{
    struct topic_specs specs;
    struct why why;

    (void)state;
    enum err err = topic_specs_read(&specs, SOURCE_DIR "/deploy/topics/topics.conf", &why);
    if (err)
        fail_msg("%s", why.text);
    assert_int_equal(specs.n, TOPIC_COUNT);
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        bool found = false;
        for (size_t k = 0; k < specs.n; k++)
            found |= str_is(str_of(specs.at[k].name), topic_base_name((enum topic)i));
        if (!found)
            fail_msg("%s is not in topics.conf", topic_base_name((enum topic)i));
    }
    topic_specs_clear(&specs);
}

static const struct topic_spec *spec_of(const struct topic_specs *specs, enum topic topic)
{
    for (size_t i = 0; i < specs->n; i++)
        if (str_is(str_of(specs->at[i].name), topic_base_name(topic)))
            return &specs->at[i];
    fail_msg("%s is not in topics.conf", topic_base_name(topic));
    return NULL;
}

static void each_target_of_what_is_put_off_has_its_partition(void **state)
{
    struct topic_specs specs;
    struct why why;
    (void)state;
    assert_int_equal(topic_specs_read(&specs, SOURCE_DIR "/deploy/topics/topics.conf", &why), OK);
    for (int i = TOPIC_DELAY_10S; i <= TOPIC_DELAY_1H;
         i++) /* 6: two were callbacks', reconcile's */
        assert_in_range(spec_of(&specs, (enum topic)i)->partitions,
                        topic_delay_place(TOPIC_DISPATCH_L1), 6);
    for (int i = TOPIC_RDELAY_1M; i <= TOPIC_RDELAY_1H; i++)
        assert_int_equal(spec_of(&specs, (enum topic)i)->partitions,
                         topic_delay_place(TOPIC_RECONCILE));
    topic_specs_clear(&specs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_with_units_become_what_kafka_takes),
        cmocka_unit_test(faults_are_named_with_line_and_column),
        cmocka_unit_test(the_committed_file_and_the_topics_of_the_code_are_the_same),
        cmocka_unit_test(each_target_of_what_is_put_off_has_its_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
