/* What metadata of committed offsets tells the next owner of a partition (topic_unclaimed.h). */
#include <librdkafka/rdkafka.h>

#include "topic_reader_inner.h"

#define ASK_MS  2000
#define TELL_MS 2000

static rd_kafka_topic_partition_list_t *not_known(const struct topic_reader *r)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    for (size_t i = 0; i < r->n_partitions; i++)
        if (!r->partitions[i]->unclaimed.known)
            rd_kafka_topic_partition_list_add(list, r->partitions[i]->topic, r->partitions[i]->id);
    return list;
}

static void inherit(struct topic_reader *r, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &list->elems[i];
        struct topic_partition *p = topic_reader_find(r, t->topic, t->partition);
        if (p && !t->err)
            topic_unclaimed_inherit(&p->unclaimed, t->offset,
                                    (struct str){ t->metadata, t->metadata_size });
    }
}

void topic_reader_ask_unclaimed(struct topic_reader *r)
{
    if (!r->unclaimed || atomic_load(&r->joining.now)) /* it would wait behind the join */
        return;
    rd_kafka_topic_partition_list_t *list = not_known(r);
    if (list->cnt) {
        rd_kafka_resp_err_t err = rd_kafka_committed(r->client.rk, list, ASK_MS);
        if (err)
            topic_client_trouble(&r->client, rd_kafka_err2str(err));
        else
            inherit(r, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static int64_t ahead_of(const struct topic_partition *p)
{
    return p->mark.next + TOPIC_UNCLAIMED_AHEAD;
}

/* NULL: something else is under way, whose answer must come first: sent again by librdkafka after
 * ours it would take back what ours told. */
static rd_kafka_topic_partition_list_t *to_tell(struct topic_reader *r)
{
    for (size_t i = 0; i < r->n_partitions; i++)
        if (r->partitions[i]->unanswered >= 0)
            return NULL;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    for (size_t i = 0; i < r->n_partitions; i++) {
        struct topic_partition *p = r->partitions[i];
        if (p->n_held && p->unclaimed.known)
            topic_reader_commit_put(list, p, watermark_offset(&p->mark), ahead_of(p));
    }
    return list;
}

enum err topic_reader_tell_unclaimed(struct topic_reader *r, struct why *why)
{
    if (atomic_load(&r->joining.now))
        return why_set(why, ERR_RETRY, "cannot commit offsets: the group is being rebalanced");
    rd_kafka_topic_partition_list_t *list = to_tell(r);
    if (!list)
        return why_set(why, ERR_RETRY, "cannot commit offsets: a commit is under way");
    enum err err = list->cnt ? topic_reader_commit_list(r, list, TELL_MS, why) : OK;
    for (int i = 0; !err && i < list->cnt; i++) {
        struct topic_partition *p =
            topic_reader_find(r, list->elems[i].topic, list->elems[i].partition);
        topic_unclaimed_told(&p->unclaimed, ahead_of(p));
    }
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

static const struct topic_partition *partition_of(const struct record *record)
{
    return ((const struct held *)(const void *)record)->partition;
}

bool record_may_be_unclaimed(const struct record *record)
{
    const struct topic_partition *p = partition_of(record);

    return p && topic_unclaimed_may_be(&p->unclaimed, record->at.offset);
}

bool record_was_unclaimed(const struct record *record)
{
    const struct topic_partition *p = partition_of(record);

    return p && topic_unclaimed_was(&p->unclaimed, record->at.offset);
}
