#include "topic_admin.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"
#include "topic_ends.h"

#define LOOK_AGAIN_MS 20

struct topic_admin {
    struct topic_client client; /* first: librdkafka's opaque */
    rd_kafka_queue_t *answers;
    int timeout_ms;
};

static const topic_setting no_settings[] = { { NULL, NULL } };

enum err topic_admin_new(struct topic_admin **ret, const struct kafka_options *options,
                         int timeout_ms, struct why *why)
{
    struct topic_admin *a = mem_alloc(1, sizeof(*a));
    rd_kafka_conf_t *conf;

    topic_client_init(&a->client, options);
    a->timeout_ms = timeout_ms;
    enum err err =
        topic_client_configure(&a->client, options, no_settings, no_settings, &conf, why);
    if (!err)
        err = topic_client_open(&a->client, true, conf, why);
    if (err) {
        topic_admin_free(a);
        return err;
    }
    a->answers = rd_kafka_queue_new(a->client.rk);
    *ret = a;
    return OK;
}

void topic_admin_free(struct topic_admin *a)
{
    if (!a)
        return;
    if (a->answers)
        rd_kafka_queue_destroy(a->answers);
    topic_client_clear(&a->client);
    free(a);
}

enum err topic_admin_brokers(struct topic_admin *a, int *ret, struct why *why)
{
    const struct rd_kafka_metadata *metadata;
    enum err err = topic_client_metadata(&a->client, a->timeout_ms, &metadata, why);

    if (err)
        return err;
    *ret = metadata->broker_cnt;
    rd_kafka_metadata_destroy(metadata);
    return OK;
}

static rd_kafka_AdminOptions_t *request(struct topic_admin *a, rd_kafka_admin_op_t op)
{
    char text[128];
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(a->client.rk, op);

    rd_kafka_AdminOptions_set_request_timeout(options, a->timeout_ms, text, sizeof(text));
    return options;
}

/* The answer to what was just requested; *err: ERR_RETRY no answer, ERR_STOP the broker does not
 * know this kind of request, ERR_REFUSE. */
static rd_kafka_event_t *answer(struct topic_admin *a, enum err *err, struct why *why)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(a->answers, a->timeout_ms + 1000);
    rd_kafka_resp_err_t code = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;

    rd_kafka_poll(a->client.rk, 0); /* collects the reason */
    *err = OK;
    if (code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
        *err = why_set(why, ERR_STOP, "this broker cannot do that: %s",
                       rd_kafka_event_error_string(event));
    else if (code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT)
        *err = topic_client_unreachable(&a->client, why);
    else if (code)
        *err = why_set(why, ERR_REFUSE, "Kafka refused: %s", rd_kafka_event_error_string(event));
    return event;
}

static void event_clear(rd_kafka_event_t **event)
{
    if (*event)
        rd_kafka_event_destroy(*event);
}

/* ---- create --------------------------------------------------------------------------------- */

enum err topic_admin_create(struct topic_admin *a, const struct topic_spec *spec,
                            const char *prefix, int replication, struct why *why)
{
    char name[256], text[256];
    enum err err;

    snprintf(name, sizeof(name), "%s%s", prefix, spec->name);
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(name, spec->partitions, replication, text, sizeof(text));
    if (!topic)
        return why_set(why, ERR_REFUSE, "topic %s: %s", name, text);
    for (size_t i = 0; i < spec->n_configs; i++)
        rd_kafka_NewTopic_set_config(topic, spec->configs[i].name, spec->configs[i].value);
    if (!topic_spec_config(spec, "min.insync.replicas"))
        rd_kafka_NewTopic_set_config(topic, "min.insync.replicas", replication > 2 ? "2" : "1");
    rd_kafka_AdminOptions_t *options = request(a, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_operation_timeout(options, a->timeout_ms, text, sizeof(text));
    rd_kafka_CreateTopics(a->client.rk, &topic, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer(a, &err, why);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    if (err)
        return err;

    size_t n;
    const rd_kafka_topic_result_t **created =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    rd_kafka_resp_err_t code = n == 1 ? rd_kafka_topic_result_error(created[0]) : 0;
    if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
        return why_set(why, ERR_REFUSE, "topic %s: %s", name,
                       rd_kafka_topic_result_error_string(created[0]));
    return OK;
}

/* ---- compare -------------------------------------------------------------------------------- */

static void differ(struct topic_report *report, const char *what, const char *is,
                   const char *should)
{
    size_t len = strlen(report->detail);

    report->state = TOPIC_STATE_DIFFERS;
    report->differences++;
    snprintf(report->detail + len, sizeof(report->detail) - len, "%s%s is %s, not %s",
             len ? "; " : "", what, is, should);
}

/* Which topics there are, with how many partitions. */
static enum err compare_partitions(struct topic_admin *a, const struct topic_specs *specs,
                                   const char *prefix, struct topic_report *reports,
                                   struct why *why)
{
    const struct rd_kafka_metadata *metadata;
    size_t prefix_len = strlen(prefix);
    char is[16], should[16];
    enum err err = topic_client_metadata(&a->client, a->timeout_ms, &metadata, why);

    if (err)
        return err;
    for (size_t i = 0; i < specs->n; i++)
        reports[i] = (struct topic_report){ .state = TOPIC_STATE_MISSING };
    for (int k = 0; k < metadata->topic_cnt; k++) {
        const struct rd_kafka_metadata_topic *t = &metadata->topics[k];
        for (size_t i = 0; i < specs->n; i++) {
            if (t->err || strncmp(t->topic, prefix, prefix_len) ||
                strcmp(t->topic + prefix_len, specs->at[i].name))
                continue;
            reports[i].state = TOPIC_STATE_OK;
            snprintf(is, sizeof(is), "%d", t->partition_cnt);
            snprintf(should, sizeof(should), "%d", specs->at[i].partitions);
            if (t->partition_cnt != specs->at[i].partitions)
                differ(&reports[i], "partitions", is, should);
        }
    }
    rd_kafka_metadata_destroy(metadata);
    return OK;
}

static void compare_configs(const struct topic_spec *spec, const rd_kafka_ConfigResource_t *is,
                            struct topic_report *report)
{
    size_t n;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(is, &n);

    for (size_t i = 0; i < n; i++) {
        const char *name = rd_kafka_ConfigEntry_name(entries[i]);
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        const char *should = topic_spec_config(spec, name);
        if (should && strcmp(value ? value : "", should))
            differ(report, name, value ? value : "(unset)", should);
    }
}

/* What the brokers say of a topic's settings: a result with one resource, without an error of its
 * own. */
static rd_kafka_event_t *describe(struct topic_admin *a, const char *topic, enum err *err,
                                  struct why *why)
{
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_AdminOptions_t *options = request(a, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_DescribeConfigs(a->client.rk, &resource, 1, options, a->answers);
    rd_kafka_event_t *event = answer(a, err, why);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(resource);
    if (*err)
        return event;

    size_t n;
    const rd_kafka_ConfigResource_t **found =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
    if (n != 1 || rd_kafka_ConfigResource_error(found[0]))
        *err = why_set(why, ERR_REFUSE, "topic %s: %s", topic,
                       n == 1 ? rd_kafka_ConfigResource_error_string(found[0]) : "no settings");
    return event;
}

static enum err compare_topic(struct topic_admin *a, const struct topic_spec *spec,
                              const char *prefix, struct topic_report *report, struct why *why)
{
    char name[256];
    enum err err;
    size_t n;

    snprintf(name, sizeof(name), "%s%s", prefix, spec->name);
    rd_kafka_event_t *event CLEANUP(event_clear) = describe(a, name, &err, why);
    if (!err)
        compare_configs(spec,
                        rd_kafka_DescribeConfigs_result_resources(
                            rd_kafka_event_DescribeConfigs_result(event), &n)[0],
                        report);
    return err;
}

/* ---- widen ---------------------------------------------------------------------------------- */

/* Numbers of which more keeps more; -1 is without limit. */
static bool is_wider(const char *name, const char *is, const char *should)
{
    static const char *const widening[] = { "retention.ms", "retention.bytes",
                                            "max.message.bytes" };
    int64_t from, to;
    for (size_t i = 0; i < sizeof(widening) / sizeof(widening[0]); i++)
        if (!strcmp(name, widening[i]) && str_to_i64(str_of(is), &from) &&
            str_to_i64(str_of(should), &to))
            return from != -1 && (to == -1 || to > from);
    return false;
}

/* The topic's own settings, those that widen replaced; true when there is one. */
static bool put_settings(const struct topic_spec *spec, const rd_kafka_ConfigResource_t *is,
                         rd_kafka_ConfigResource_t *to, struct topic_report *report)
{
    size_t n;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(is, &n);

    for (size_t i = 0; i < n; i++) {
        const char *name = rd_kafka_ConfigEntry_name(entries[i]);
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        const char *should = topic_spec_config(spec, name);
        bool own =
            rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG;
        if (should && value && is_wider(name, value, should)) {
            size_t len = strlen(report->detail);
            snprintf(report->detail + len, sizeof(report->detail) - len,
                     "%s%s raised from %s to %s", len ? "; " : "", name, value, should);
            rd_kafka_ConfigResource_set_config(to, name, should);
            report->differences++;
        } else if (own && value) {
            rd_kafka_ConfigResource_set_config(to, name, value);
        }
    }
    return report->differences > 0;
}

static enum err alter(struct topic_admin *a, rd_kafka_ConfigResource_t *resource, struct why *why)
{
    enum err err;
    size_t n;
    rd_kafka_AdminOptions_t *options = request(a, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);
    rd_kafka_AlterConfigs(a->client.rk, &resource, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer(a, &err, why);
    rd_kafka_AdminOptions_destroy(options);
    if (err)
        return err;
    const rd_kafka_ConfigResource_t **answered =
        rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &n);
    if (n == 1 && rd_kafka_ConfigResource_error(answered[0]))
        return why_set(why, ERR_REFUSE, "topic %s: %s", rd_kafka_ConfigResource_name(answered[0]),
                       rd_kafka_ConfigResource_error_string(answered[0]));
    return OK;
}

enum err topic_admin_widen(struct topic_admin *a, const struct topic_spec *spec, const char *prefix,
                           struct topic_report *report, struct why *why)
{
    struct topic_report raised = { .state = TOPIC_STATE_WIDENED };
    char name[256];
    enum err err;
    size_t n;

    snprintf(name, sizeof(name), "%s%s", prefix, spec->name);
    rd_kafka_event_t *event CLEANUP(event_clear) = describe(a, name, &err, why);
    if (err)
        return err;
    const rd_kafka_ConfigResource_t *is = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &n)[0];
    rd_kafka_ConfigResource_t *to = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
    if (put_settings(spec, is, to, &raised)) {
        err = alter(a, to, why);
        size_t len = strlen(raised.detail);
        if (!err && report->differences > raised.differences) {
            raised.state = TOPIC_STATE_DIFFERS;
            snprintf(raised.detail + len, sizeof(raised.detail) - len, "; before: %.180s",
                     report->detail);
        }
        if (!err)
            *report = raised;
    }
    rd_kafka_ConfigResource_destroy(to);
    return err;
}

enum err topic_admin_await_topics(struct topic_admin *a, const struct topic_specs *specs,
                                  const char *prefix, struct why *why)
{
    struct topic_report *reports = mem_alloc(specs->n, sizeof(*reports));
    int64_t deadline = clock_mono_ms() + a->timeout_ms;
    enum err err;

    do {
        err = compare_partitions(a, specs, prefix, reports, why);
        for (size_t i = 0; !err && i < specs->n; i++)
            if (reports[i].state == TOPIC_STATE_MISSING)
                err = why_set(why, ERR_RETRY, "topic %s%s was made, but no broker knows it", prefix,
                              specs->at[i].name);
        if (err)
            rd_kafka_poll(a->client.rk, LOOK_AGAIN_MS);
    } while (err && clock_mono_ms() < deadline);
    free(reports);
    return err;
}

enum err topic_admin_check(struct topic_admin *a, const struct topic_specs *specs,
                           const char *prefix, struct topic_report *reports, struct why *why)
{
    enum err err = compare_partitions(a, specs, prefix, reports, why);

    if (err || topic_client_is_mock(&a->client, a->timeout_ms))
        return err; /* it has no configs, and never answers when it is asked for them */
    for (size_t i = 0; !err && i < specs->n; i++)
        if (reports[i].state != TOPIC_STATE_MISSING)
            err = compare_topic(a, &specs->at[i], prefix, &reports[i], why);
    return err;
}

/* ---- lag ------------------------------------------------------------------------------------ */

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
    rd_kafka_ListConsumerGroupOffsets_t *of = rd_kafka_ListConsumerGroupOffsets_new(group, list);
    rd_kafka_AdminOptions_t *options = request(a, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
    rd_kafka_ListConsumerGroupOffsets(a->client.rk, &of, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer(a, &err, why);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ListConsumerGroupOffsets_destroy(of);
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
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    struct partition_lag *lags = NULL;
    enum err err = topic_client_partitions(&a->client, topics, n_topics, a->timeout_ms, list, why);

    if (!err) {
        lags = mem_alloc((size_t)list->cnt, sizeof(*lags));
        err = fill(a, group, list, lags, why);
    }
    if (!err) {
        *ret = lags;
        *n = (size_t)list->cnt;
    } else {
        free(lags);
    }
    rd_kafka_topic_partition_list_destroy(list);
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
