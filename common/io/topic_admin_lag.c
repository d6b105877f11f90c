#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "topic_admin.h"
#include "topic_admin_inner.h"
#include "topic_ends.h"

/* The partitions of the topics that were asked for. */
struct wanted {
    const char *const *topics;
    size_t n;
    rd_kafka_topic_partition_list_t *list;
};

static void add_partitions(void *opaque, const char *topic, int partitions)
{
    struct wanted *wanted = opaque;

    for (size_t i = 0; i < wanted->n; i++)
        if (!strcmp(wanted->topics[i], topic))
            rd_kafka_topic_partition_list_add_range(wanted->list, topic, 0, partitions - 1);
}

static enum err list_partitions(struct topic_admin *a, struct wanted *wanted, struct why *why)
{
    enum err err = topic_client_topics(&a->client, a->timeout_ms, add_partitions, wanted, why);

    for (size_t i = 0; !err && i < wanted->n; i++)
        if (!rd_kafka_topic_partition_list_find(wanted->list, wanted->topics[i], 0))
            err = why_set(why, ERR_STOP, "missing in Kafka: %s", wanted->topics[i]);
    return err;
}

static enum err fill_committed(struct partition_lag *lags, size_t n,
                               const rd_kafka_topic_partition_list_t *committed, struct why *why)
{
    for (int i = 0; i < committed->cnt; i++) {
        const rd_kafka_topic_partition_t *t = &committed->elems[i];
        if (t->err)
            return why_set(why, ERR_RETRY, "cannot get the committed offset of %s [%d]: %s",
                           t->topic, (int)t->partition, rd_kafka_err2str(t->err));
        for (size_t k = 0; k < n; k++)
            if (lags[k].partition == t->partition && !strcmp(lags[k].topic, t->topic))
                lags[k].committed = t->offset >= 0 ? t->offset : -1;
    }
    return OK;
}

static enum err ask_committed(struct topic_admin *a, const char *group,
                              const rd_kafka_topic_partition_list_t *list,
                              struct partition_lag *lags, struct why *why)
{
    enum err err;
    rd_kafka_ListConsumerGroupOffsets_t *request =
        rd_kafka_ListConsumerGroupOffsets_new(group, list);
    rd_kafka_AdminOptions_t *options =
        topic_admin_request(a, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
    rd_kafka_ListConsumerGroupOffsets(a->client.rk, &request, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(topic_admin_event_clear) = topic_admin_await(a, &err, why);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ListConsumerGroupOffsets_destroy(request);
    if (err)
        return err;

    size_t n;
    const rd_kafka_group_result_t **groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(event), &n);
    for (size_t i = 0; !err && i < n; i++) {
        const rd_kafka_error_t *error = rd_kafka_group_result_error(groups[i]);
        if (error)
            return why_set(why, ERR_REFUSE, "group %s: %s", group, rd_kafka_error_string(error));
        err = fill_committed(lags, (size_t)list->cnt, rd_kafka_group_result_partitions(groups[i]),
                             why);
    }
    return err;
}

static enum err ask_ends(struct topic_admin *a, const rd_kafka_topic_partition_list_t *list,
                         struct partition_lag *lags, struct why *why)
{
    struct topic_end *ends = mem_alloc((size_t)list->cnt, sizeof(*ends));
    enum err err = topic_ends_ask(a->client.rk, list, a->timeout_ms, ends, why);

    for (int i = 0; !err && i < list->cnt; i++) {
        struct partition_lag *p = &lags[i];
        p->low = ends[i].first;
        p->end = ends[i].end;
        /* What retention has taken away is not waiting any more. Of a topic made anew, with an
         * end before what was committed, all is read. */
        bool there = p->committed > p->low && p->committed <= p->end;
        p->lag = p->end - (there ? p->committed : p->low);
    }
    free(ends);
    return err;
}

static int compare(const void *left, const void *right)
{
    const struct partition_lag *a = left, *b = right;
    int by_topic = strcmp(a->topic, b->topic);

    return by_topic ? by_topic : (a->partition > b->partition) - (a->partition < b->partition);
}

static enum err fill(struct topic_admin *a, const char *group,
                     const rd_kafka_topic_partition_list_t *list, struct partition_lag *lags,
                     struct why *why)
{
    size_t n = (size_t)list->cnt;

    for (size_t i = 0; i < n; i++) {
        (void)str_copy(lags[i].topic, sizeof(lags[i].topic), str_of(list->elems[i].topic));
        lags[i].partition = list->elems[i].partition;
        lags[i].committed = -1;
    }
    enum err err = ask_committed(a, group, list, lags, why);
    if (!err)
        err = ask_ends(a, list, lags, why);
    qsort(lags, n, sizeof(*lags), compare);
    return err;
}

enum err topic_admin_lag(struct topic_admin *a, const char *group, const char *const *topics,
                         size_t n_topics, struct partition_lag **ret, size_t *n, struct why *why)
{
    struct wanted wanted = { topics, n_topics, rd_kafka_topic_partition_list_new(16) };
    enum err err = list_partitions(a, &wanted, why);

    if (!err) {
        size_t count = (size_t)wanted.list->cnt;
        struct partition_lag *lags = mem_alloc(count, sizeof(*lags));
        err = fill(a, group, wanted.list, lags, why);
        if (!err) {
            *ret = lags;
            *n = count;
        } else {
            free(lags);
        }
    }
    rd_kafka_topic_partition_list_destroy(wanted.list);
    return err;
}

enum err topic_admin_behind(struct topic_admin *a, const struct topic_position *at, size_t n,
                            ptrdiff_t *ret, struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);
    struct topic_end *ends = mem_alloc(n, sizeof(*ends));

    for (size_t i = 0; i < n; i++)
        rd_kafka_topic_partition_list_add(list, at[i].topic, at[i].partition);
    enum err err = topic_ends_ask(a->client.rk, list, a->timeout_ms, ends, why);
    *ret = -1;
    for (size_t i = 0; !err && *ret < 0 && i < n; i++)
        if (at[i].offset < ends[i].end)
            *ret = (ptrdiff_t)i;
    free(ends);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}
