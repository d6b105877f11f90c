#include <librdkafka/rdkafka.h>

#include "topic_reader_inner.h"

#define COMMIT_WAIT_MS 5000

/* What is due of the listed partitions (NULL: all); NULL when there is nothing. */
static rd_kafka_topic_partition_list_t *offsets_due(struct topic_reader *r,
                                                    const rd_kafka_topic_partition_list_t *only)
{
    rd_kafka_topic_partition_list_t *list = NULL;

    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        int64_t offset = topic_partition_due(p);
        if (offset < 0 || (only && !rd_kafka_topic_partition_list_find(only, p->topic, p->id)))
            continue;
        if (!list)
            list = rd_kafka_topic_partition_list_new((int)r->n_partitions);
        rd_kafka_topic_partition_list_add(list, p->topic, p->id)->offset = offset;
        p->committing = offset;
    }
    return list;
}

void topic_reader_commit_finish(struct topic_reader *r, int err,
                                const rd_kafka_topic_partition_list_t *list)
{
    if (err && err != RD_KAFKA_RESP_ERR__NO_OFFSET)
        topic_client_trouble(&r->client, rd_kafka_err2str((rd_kafka_resp_err_t)err));
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        struct topic_partition *p = topic_reader_find(r, t->topic, t->partition);
        if (p && (err || t->err) && p->committing == t->offset)
            p->committing = -1;
    }
}

void topic_reader_commit_start(struct topic_reader *r)
{
    rd_kafka_topic_partition_list_t *list;

    if (atomic_load(&r->joining.now))
        return;
    list = offsets_due(r, NULL);
    if (!list)
        return;
    rd_kafka_resp_err_t err = rd_kafka_commit(r->client.rk, list, 1);
    if (err)
        topic_reader_commit_finish(r, err, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; list && i < list->cnt; i++)
        if (list->elems[i].err)
            return list->elems[i].err;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* rd_kafka_commit would wait for ever when the broker is gone. */
enum err topic_reader_commit_wait(struct topic_reader *r,
                                  const rd_kafka_topic_partition_list_t *only, struct why *why)
{
    if (atomic_load(&r->joining.now))
        return why_set(why, ERR_RETRY, "cannot commit offsets: the group is being rebalanced");
    rd_kafka_topic_partition_list_t *list = offsets_due(r, only);
    if (!list)
        return OK;
    rd_kafka_queue_t *answers = rd_kafka_queue_new(r->client.rk);
    rd_kafka_resp_err_t err = rd_kafka_commit_queue(r->client.rk, list, answers, NULL, NULL);
    rd_kafka_event_t *event = err ? NULL : rd_kafka_queue_poll(answers, COMMIT_WAIT_MS);
    if (event) {
        err = rd_kafka_event_error(event);
        if (!err)
            err = first_error(rd_kafka_event_topic_partition_list(event));
    } else if (!err)
        err = RD_KAFKA_RESP_ERR__TIMED_OUT;
    topic_reader_commit_finish(r, err, list);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_topic_partition_list_destroy(list);
    if (!err)
        return OK;
    return why_set(why, ERR_RETRY, "cannot commit offsets: %s", rd_kafka_err2str(err));
}

enum err topic_reader_commit(struct topic_reader *r, struct why *why)
{
    return topic_reader_commit_wait(r, NULL, why);
}
