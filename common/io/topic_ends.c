#include "topic_ends.h"

#include <librdkafka/rdkafka.h>
#include <string.h>

/* ListOffsets of one kind: the list's offsets become where, and then the answers. */
static enum err ask(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t where,
                    int timeout_ms, struct why *why)
{
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = where;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(rk, list, timeout_ms);
    const rd_kafka_topic_partition_t *first = &list->elems[0], *last = &list->elems[list->cnt - 1];
    if (code) /* of all of them; which it was librdkafka does not say */
        return why_set(why, ERR_RETRY,
                       "cannot get the ends of the %d partitions of %s%s: %s: is each one's leader "
                       "running?",
                       list->cnt, first->topic, strcmp(first->topic, last->topic) ? ", …" : "",
                       rd_kafka_err2str(code));
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        if (t->err || t->offset < 0)
            return why_set(why, ERR_RETRY, "cannot get the end of %s [%d]: %s", t->topic,
                           (int)t->partition,
                           t->err ? rd_kafka_err2str(t->err) : "Kafka did not say");
    }
    return OK;
}

enum err topic_ends_ask(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *of, int timeout_ms,
                        struct topic_end *ends, struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(of);
    enum err err = ask(rk, list, RD_KAFKA_OFFSET_BEGINNING, timeout_ms, why);

    for (int i = 0; !err && i < of->cnt; i++)
        ends[i].first = list->elems[i].offset;
    if (!err)
        err = ask(rk, list, RD_KAFKA_OFFSET_END, timeout_ms, why);
    for (int i = 0; !err && i < of->cnt; i++)
        ends[i].end = list->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

enum err topic_ends_at_times(struct topic_client *c, rd_kafka_topic_partition_list_t *list,
                             int timeout_ms, struct why *why)
{
    if (topic_client_is_mock(c, timeout_ms)) {
        for (int i = 0; i < list->cnt; i++)
            list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
        return OK;
    }
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].err = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(c->rk, list, timeout_ms);
    for (int i = 0; !code && i < list->cnt; i++)
        code = list->elems[i].err;
    return code ? why_set(why, ERR_RETRY, "cannot find offsets by time: %s", rd_kafka_err2str(code))
                : OK;
}
