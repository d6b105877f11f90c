#include "topic_ends.h"

#include <librdkafka/rdkafka.h>
#include <string.h>

/* ListOffsets: of the list's partitions, each at its first or last offset. The caller destroys. */
static rd_kafka_topic_partition_list_t *at(const rd_kafka_topic_partition_list_t *of, int64_t where)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(of);

    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = where;
    return list;
}

static enum err take(const rd_kafka_topic_partition_list_t *reported,
                     const rd_kafka_topic_partition_t *of, int64_t *offset, struct why *why)
{
    const rd_kafka_topic_partition_t *found =
        rd_kafka_topic_partition_list_find(reported, of->topic, of->partition);

    rd_kafka_resp_err_t err = found ? found->err : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!err && found && found->offset >= 0) {
        *offset = found->offset;
        return OK;
    }
    return why_set(why, ERR_RETRY, "cannot get the end of %s [%d]: %s", of->topic,
                   (int)of->partition, err ? rd_kafka_err2str(err) : "Kafka did not say");
}

enum err topic_ends_ask(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *of, int timeout_ms,
                        struct topic_end *ends, struct why *why)
{
    rd_kafka_topic_partition_list_t *firsts = at(of, RD_KAFKA_OFFSET_BEGINNING);
    rd_kafka_topic_partition_list_t *lasts = at(of, RD_KAFKA_OFFSET_END);
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(rk, firsts, timeout_ms);
    enum err err = OK;

    if (!code)
        code = rd_kafka_offsets_for_times(rk, lasts, timeout_ms);
    if (code) /* of all of them; which it was librdkafka does not say */
        err = why_set(why, ERR_RETRY,
                      "cannot get the ends of the %d partitions of %s%s: %s: is each one's leader "
                      "running?",
                      of->cnt, of->elems[0].topic,
                      strcmp(of->elems[0].topic, of->elems[of->cnt - 1].topic) ? ", …" : "",
                      rd_kafka_err2str(code));
    for (int i = 0; !err && i < of->cnt; i++) {
        err = take(firsts, &of->elems[i], &ends[i].first, why);
        if (!err)
            err = take(lasts, &of->elems[i], &ends[i].end, why);
    }
    rd_kafka_topic_partition_list_destroy(firsts);
    rd_kafka_topic_partition_list_destroy(lasts);
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
