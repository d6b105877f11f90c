/* What librdkafka answers about the groups that are asked at once: in any order, with faults, or
 * about others. Its answers are the test's, no broker is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>
#include <string.h>
#include <cmocka.h>

#define TOPIC  "events" /* two partitions */
#define GROUPS 3

/* One answer: the event, its one result, and that of the group. */
struct said {
    const char *group;
    int64_t committed[2];      /* of the partitions; -1: it does not name them */
    rd_kafka_resp_err_t fault; /* of the whole answer, the group, or the second partition: */
    enum { SAID_WELL, SAID_NOT, SAID_NOT_OF_GROUP, SAID_NOT_OF_PARTITION } how;
};

static struct {
    const struct said *next;
    size_t left;
    rd_kafka_topic_partition_list_t *partitions; /* of the last one */
    rd_kafka_error_t *error;
} queue;

static rd_kafka_event_t *queue_poll(int timeout_ms)
{
    if (timeout_ms == 0 || queue.left == 0) /* 0: for what came late */
        return NULL;
    queue.left--;
    return (rd_kafka_event_t *)(uintptr_t)queue.next++;
}

static void queue_clear(void)
{
    if (queue.partitions)
        rd_kafka_topic_partition_list_destroy(queue.partitions);
    if (queue.error)
        rd_kafka_error_destroy(queue.error);
    queue.partitions = NULL;
    queue.error = NULL;
}

static const struct said *said_of(const void *event)
{
    return event;
}

static rd_kafka_resp_err_t said_error(const void *event)
{
    const struct said *said = said_of(event);
    return said->how == SAID_NOT ? said->fault : RD_KAFKA_RESP_ERR_NO_ERROR;
}

static const char *said_text(const void *event)
{
    return rd_kafka_err2str(said_error(event));
}

static const rd_kafka_group_result_t **said_groups(const void *event, size_t *n)
{
    static const rd_kafka_group_result_t *one;
    one = event;
    *n = 1;
    return &one;
}

static const rd_kafka_error_t *said_group_error(const void *event)
{
    const struct said *said = said_of(event);
    queue_clear();
    if (said->how == SAID_NOT_OF_GROUP)
        queue.error = rd_kafka_error_new(said->fault, "%s", rd_kafka_err2str(said->fault));
    return queue.error;
}

/* The last partition first. */
static const rd_kafka_topic_partition_list_t *said_partitions(const void *event)
{
    const struct said *said = said_of(event);
    queue_clear();
    queue.partitions = rd_kafka_topic_partition_list_new(2);
    for (int i = 1; i >= 0; i--)
        if (said->committed[i] >= 0)
            rd_kafka_topic_partition_list_add(queue.partitions, TOPIC, i)->offset =
                said->committed[i];
    if (said->how == SAID_NOT_OF_PARTITION)
        rd_kafka_topic_partition_list_find(queue.partitions, TOPIC, 1)->err = said->fault;
    return queue.partitions;
}

#define rd_kafka_queue_poll(queue, timeout_ms)                    queue_poll(timeout_ms)
#define rd_kafka_ListConsumerGroupOffsets(rk, of, n, options, to) ((void)(of))
#define rd_kafka_event_error(event)                               said_error(event)
#define rd_kafka_event_error_string(event)                        said_text(event)
#define rd_kafka_event_destroy(event)                             ((void)(event))
#define rd_kafka_event_ListConsumerGroupOffsets_result(event)     (event)
#define rd_kafka_ListConsumerGroupOffsets_result_groups(event, n) said_groups(event, n)
#define rd_kafka_group_result_name(event)                         (said_of(event)->group)
#define rd_kafka_group_result_error(event)                        said_group_error(event)
#define rd_kafka_group_result_partitions(event)                   said_partitions(event)
#define rd_kafka_event_opaque(event)                              ((void)(event), (void *)1)
#include "common/io/topic_admin.c" /* its inside is looked at */

static const char *const groups[GROUPS] = { "one", "two", "three" };

/* Asks about the groups and is answered so; lags: two of each group. */
static enum err ask(const struct said said[GROUPS], struct partition_lag lags[2 * GROUPS],
                    struct why *why)
{
    const struct kafka_options kafka = { .brokers = "127.0.0.1:1" };
    struct topic_admin *a;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add_range(list, TOPIC, 0, 1);
    assert_int_equal(topic_admin_new(&a, &kafka, 1000, why), OK);
    memset(lags, 0, 2 * GROUPS * sizeof(*lags));
    queue.next = said;
    queue.left = GROUPS;
    enum err err = ask_committed(a, groups, GROUPS, list, lags, why);
    queue_clear();
    rd_kafka_topic_partition_list_destroy(list);
    topic_admin_free(a);
    return err;
}

static void answers_in_whatever_order_are_those_of_their_groups(void **state)
{
    static const struct said said[GROUPS] = {
        { .group = "three", .committed = { 30, 31 } },
        { .group = "one", .committed = { 10, 11 } },
        { .group = "two", .committed = { -1, 21 } },
    };
    static const int64_t committed[2 * GROUPS] = { 10, 11, -1, 21, 30, 31 };
    struct partition_lag lags[2 * GROUPS];
    struct why why = { "" };
    (void)state;
    assert_int_equal(ask(said, lags, &why), OK);
    for (int i = 0; i < 2 * GROUPS; i++) {
        assert_int_equal(lags[i].committed, committed[i]);
        assert_int_equal(lags[i].partition, i % 2);
        assert_string_equal(lags[i].topic, TOPIC);
    }
}

/* The second of three answers is so. */
static void second_answer(const struct said *second, enum err kind, const char *text)
{
    const struct said said[GROUPS] = {
        { .group = "one", .committed = { 10, 11 } },
        *second,
        { .group = "three", .committed = { 30, 31 } },
    };
    struct partition_lag lags[2 * GROUPS];
    struct why why = { "" };
    assert_int_equal(ask(said, lags, &why), kind);
    assert_non_null(strstr(why.text, text));
    assert_int_equal(queue.left, 0); /* so none comes late, as an answer to the next question */
}

static void a_fault_of_one_group_or_partition_names_it(void **state)
{
    (void)state;
    second_answer(&(struct said){ .group = "two",
                                  .how = SAID_NOT_OF_GROUP,
                                  .fault = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED },
                  ERR_REFUSE, "group two: Broker: Group authorization failed");
    second_answer(&(struct said){ .group = "two",
                                  .committed = { 20, 21 },
                                  .how = SAID_NOT_OF_PARTITION,
                                  .fault = RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT },
                  ERR_RETRY, "the committed offset of " TOPIC " [1]: ");
}

static void an_answer_without_a_group_says_what_to_do(void **state)
{
    (void)state;
    second_answer(
        &(struct said){ .how = SAID_NOT, .fault = RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE },
        ERR_RETRY, "the group's coordinator is moving");
    second_answer(
        &(struct said){ .how = SAID_NOT, .fault = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED },
        ERR_REFUSE, "Kafka refused: Broker: Group authorization failed");
}

static void a_missing_answer_is_not_taken_for_nothing_committed(void **state)
{
    (void)state;
    second_answer(&(struct said){ .group = "one", .committed = { 10, 11 } }, ERR_RETRY,
                  "did not answer about group two");
    second_answer(&(struct said){ .group = "another", .committed = { 10, 11 } }, ERR_RETRY,
                  "about group 'another', which was not asked for");
}

static void of_several_faults_the_first_is_said(void **state)
{
    static const struct said said[GROUPS] = {
        { .group = "two",
          .how = SAID_NOT_OF_GROUP,
          .fault = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED },
        { .how = SAID_NOT, .fault = RD_KAFKA_RESP_ERR_NOT_COORDINATOR },
        { .group = "another" },
    };
    struct partition_lag lags[2 * GROUPS];
    struct why why = { "" };
    (void)state;
    assert_int_equal(ask(said, lags, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "group two: "));
    assert_int_equal(queue.left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_in_whatever_order_are_those_of_their_groups),
        cmocka_unit_test(a_fault_of_one_group_or_partition_names_it),
        cmocka_unit_test(an_answer_without_a_group_says_what_to_do),
        cmocka_unit_test(a_missing_answer_is_not_taken_for_nothing_committed),
        cmocka_unit_test(of_several_faults_the_first_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
