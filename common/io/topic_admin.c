#include "topic_admin.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_client.h"

#define LOOK_AGAIN_MS 20
#define NEVER_MS      3600000 /* the most that librdkafka takes */
#define OPEN_MAX      120     /* ten rounds of the pages; each holds a list of all partitions */
#define REPLICATION   3       /* where there are as many brokers */

struct topic_admin {
    struct topic_client client; /* first: librdkafka's opaque */
    rd_kafka_queue_t *answers;
    uintptr_t round; /* of questions about groups */
    size_t n_open;   /* of these questions: librdkafka has not answered them yet */
    int timeout_ms;
};

/* One record of a partition is wanted at a time: librdkafka fetches little ahead. A broker gives a
 * record that is larger all the same. fetch.max.bytes is not set: librdkafka makes it fit the queue
 * and the largest message, and refuses one that is less than message.max.bytes. */
static const topic_setting defaults[] = {
    { "fetch.message.max.bytes", "65536" },
    { "queued.max.messages.kbytes", "4096" },
    { NULL, NULL },
};

enum err topic_admin_new(struct topic_admin **ret, const struct kafka_options *options,
                         int timeout_ms, struct why *why)
{
    struct topic_admin *a = mem_alloc(1, sizeof(*a));

    a->timeout_ms = timeout_ms;
    /* With the name of a group, which it never joins: without one a client whose coordinator
     * answers NOT_COORDINATOR ends the process (librdkafka#5040, open). Its records stay apart from
     * what rd_kafka_poll serves: one that it met there would end the process, too. */
    enum err err = topic_client_open_groupless(&a->client, options, defaults, why);
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
    if (!a || a->n_open) /* with open questions librdkafka's end may wait for ever */
        return;
    if (a->answers)
        rd_kafka_queue_destroy(a->answers);
    topic_client_clear(&a->client);
    free(a);
}

/* Drops answers that came too late for an earlier question. */
static void late_answers_drop(struct topic_admin *a)
{
    rd_kafka_event_t *late;
    while ((late = rd_kafka_queue_poll(a->answers, 0))) {
        if (rd_kafka_event_type(late) == RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT)
            a->n_open--;
        rd_kafka_event_destroy(late);
    }
}

static rd_kafka_AdminOptions_t *request(struct topic_admin *a, rd_kafka_admin_op_t op)
{
    char text[128];
    late_answers_drop(a);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(a->client.rk, op);

    rd_kafka_AdminOptions_set_request_timeout(options, a->timeout_ms, text, sizeof(text));
    return options;
}

/* The next answer to what was requested; *err: ERR_RETRY no answer, ERR_STOP the broker does not
 * know this kind of request, ERR_REFUSE. */
static rd_kafka_event_t *answer_wait(struct topic_admin *a, enum err *err, struct why *why)
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
    else if (code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
             code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
             code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
        *err = why_set(why, ERR_RETRY, "the group's coordinator is moving, ask again: %s",
                       rd_kafka_err2str(code));
    else if (code)
        *err = why_set(why, ERR_REFUSE, "Kafka refused: %s", rd_kafka_event_error_string(event));
    return event;
}

static void event_clear(rd_kafka_event_t **event)
{
    if (*event)
        rd_kafka_event_destroy(*event);
}

static void options_clear(rd_kafka_AdminOptions_t **options)
{
    rd_kafka_AdminOptions_destroy(*options);
}

static void resource_clear(rd_kafka_ConfigResource_t **resource)
{
    rd_kafka_ConfigResource_destroy(*resource);
}

/* ---- topics --------------------------------------------------------------------------------- */

static enum err create(struct topic_admin *a, const struct topic_spec *spec, const char *name,
                       int replication, struct why *why)
{
    char text[256];
    enum err err;
    size_t n;
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(name, spec->partitions, replication, text, sizeof(text));

    if (!topic)
        return why_set(why, ERR_REFUSE, "topic %s: %s", name, text);
    for (size_t i = 0; i < spec->n_configs; i++)
        rd_kafka_NewTopic_set_config(topic, spec->configs[i].name, spec->configs[i].value);
    if (!topic_spec_config(spec, "min.insync.replicas"))
        rd_kafka_NewTopic_set_config(topic, "min.insync.replicas", replication > 2 ? "2" : "1");
    rd_kafka_AdminOptions_t *options CLEANUP(options_clear) =
        request(a, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_operation_timeout(options, a->timeout_ms, text, sizeof(text));
    rd_kafka_CreateTopics(a->client.rk, &topic, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer_wait(a, &err, why);
    rd_kafka_NewTopic_destroy(topic);
    if (err)
        return err;
    const rd_kafka_topic_result_t **created =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    rd_kafka_resp_err_t code = n == 1 ? rd_kafka_topic_result_error(created[0]) : 0;
    if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
        return why_set(why, ERR_REFUSE, "topic %s: %s", name,
                       rd_kafka_topic_result_error_string(created[0]));
    return OK;
}

/* "a is 1, not 2", or "a raised from 1 to 2". */
static void detail(struct topic_report *report, enum topic_state state, const char *what,
                   const char *is, const char *should)
{
    size_t len = strlen(report->detail);
    bool raised = state == TOPIC_STATE_WIDENED;

    if (report->state != TOPIC_STATE_DIFFERS) /* of both this is said */
        report->state = state;
    snprintf(report->detail + len, sizeof(report->detail) - len,
             raised ? "%s%s raised from %s to %s" : "%s%s is %s, not %s", len ? "; " : "", what, is,
             should);
}

/* Settings whose larger value keeps more; -1 is no limit. */
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

static enum err alter(struct topic_admin *a, rd_kafka_ConfigResource_t *resource, struct why *why)
{
    enum err err;
    size_t n;
    rd_kafka_AdminOptions_t *options CLEANUP(options_clear) =
        request(a, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);

    rd_kafka_AlterConfigs(a->client.rk, &resource, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer_wait(a, &err, why);
    if (err)
        return err;
    const rd_kafka_ConfigResource_t **answered =
        rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &n);
    if (n == 1 && rd_kafka_ConfigResource_error(answered[0]))
        return why_set(why, ERR_REFUSE, "topic %s: %s", rd_kafka_ConfigResource_name(answered[0]),
                       rd_kafka_ConfigResource_error_string(answered[0]));
    return OK;
}

/* Compares the topic's settings, and with widen raises those that can be. */
static enum err compare_settings(struct topic_admin *a, const struct topic_spec *spec,
                                 const char *topic, bool widen, struct topic_report *report,
                                 struct why *why)
{
    enum err err;
    size_t n;
    bool raised = false;
    rd_kafka_ConfigResource_t *to CLEANUP(resource_clear) =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_AdminOptions_t *options CLEANUP(options_clear) =
        request(a, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);

    rd_kafka_DescribeConfigs(a->client.rk, &to, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(event_clear) = answer_wait(a, &err, why);
    if (err)
        return err;
    const rd_kafka_ConfigResource_t **found =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
    if (n != 1 || rd_kafka_ConfigResource_error(found[0]))
        return why_set(why, ERR_REFUSE, "topic %s: %s", topic,
                       n == 1 ? rd_kafka_ConfigResource_error_string(found[0]) : "no settings");
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(found[0], &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = rd_kafka_ConfigEntry_name(entries[i]);
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        const char *should = topic_spec_config(spec, name);
        bool own =
            rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG;
        if (widen && should && value && is_wider(name, value, should)) {
            detail(report, TOPIC_STATE_WIDENED, name, value, should);
            rd_kafka_ConfigResource_set_config(to, name, should);
            raised = true;
            continue;
        }
        if (should && strcmp(value ? value : "", should) != 0)
            detail(report, TOPIC_STATE_DIFFERS, name, value ? value : "(unset)", should);
        if (own && value) /* AlterConfigs drops what it does not name */
            rd_kafka_ConfigResource_set_config(to, name, value);
    }
    return raised ? alter(a, to, why) : OK;
}

/* With make, what differs is changed where it can be. */
static enum err compare(struct topic_admin *a, const struct topic_specs *specs, const char *prefix,
                        bool make, int replication, struct topic_report *reports, struct why *why)
{
    const struct rd_kafka_metadata *metadata;
    char name[256], is[16], should[16];
    enum err err = topic_client_metadata(&a->client, a->timeout_ms, &metadata, why);

    if (err)
        return err;
    /* It has no settings, and never answers when it is asked for them. */
    bool is_mock = topic_client_is_mock(&a->client, a->timeout_ms);
    if (!replication)
        replication = metadata->broker_cnt < REPLICATION ? metadata->broker_cnt : REPLICATION;
    for (size_t i = 0; !err && i < specs->n; i++) {
        const struct topic_spec *spec = &specs->at[i];
        snprintf(name, sizeof(name), "%s%s", prefix, spec->name);
        int partitions = topic_client_partition_count(metadata, name);
        reports[i] = (struct topic_report){ .state = TOPIC_STATE_OK };
        if (!partitions) {
            reports[i].state = make ? TOPIC_STATE_CREATED : TOPIC_STATE_MISSING;
            err = make ? create(a, spec, name, replication, why) : OK;
            continue;
        }
        snprintf(is, sizeof(is), "%d", partitions);
        snprintf(should, sizeof(should), "%d", spec->partitions);
        if (partitions != spec->partitions)
            detail(&reports[i], TOPIC_STATE_DIFFERS, "partitions", is, should);
        if (!is_mock)
            err = compare_settings(a, spec, name, make, &reports[i], why);
    }
    rd_kafka_metadata_destroy(metadata);
    return err;
}

/* Creation is answered by the controller, and the brokers hear of it a moment later. */
enum err topic_admin_compare(struct topic_admin *a, const struct topic_specs *specs,
                             const char *prefix, bool make, int replication,
                             struct topic_report *reports, struct why *why)
{
    char name[256];
    enum err err = compare(a, specs, prefix, make, replication, reports, why);
    int64_t deadline = clock_mono_ms() + a->timeout_ms;

    if (err || !make)
        return err;
    do {
        const struct rd_kafka_metadata *metadata = NULL;
        err = topic_client_metadata(&a->client, a->timeout_ms, &metadata, why);
        for (size_t i = 0; !err && i < specs->n; i++) {
            snprintf(name, sizeof(name), "%s%s", prefix, specs->at[i].name);
            if (!topic_client_partition_count(metadata, name))
                err = why_set(why, ERR_RETRY, "topic %s was made, but no broker knows it", name);
        }
        if (metadata)
            rd_kafka_metadata_destroy(metadata);
        if (err)
            rd_kafka_poll(a->client.rk, LOOK_AGAIN_MS);
    } while (err && clock_mono_ms() < deadline);
    return err;
}

/* ---- lag ------------------------------------------------------------------------------------ */

/* Writes the answer for one group into its part of lags (one entry for each partition of list). */
static enum err committed_note(rd_kafka_event_t *event, const char *const *groups, size_t n_groups,
                               const rd_kafka_topic_partition_list_t *list,
                               struct partition_lag *lags, struct why *why)
{
    size_t n, g = 0;
    const rd_kafka_group_result_t **answered = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(event), &n);
    const char *name = n == 1 ? rd_kafka_group_result_name(answered[0]) : "";
    while (g < n_groups && strcmp(groups[g], name) != 0)
        g++;
    if (g == n_groups)
        return why_set(why, ERR_RETRY, "Kafka answered about group '%s', which was not asked for",
                       name);
    const rd_kafka_error_t *error = rd_kafka_group_result_error(answered[0]);
    if (error)
        return why_set(why, ERR_REFUSE, "group %s: %s", name, rd_kafka_error_string(error));
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *p = &list->elems[i];
        const rd_kafka_topic_partition_t *committed = rd_kafka_topic_partition_list_find(
            rd_kafka_group_result_partitions(answered[0]), p->topic, p->partition);
        struct partition_lag *to = &lags[g * (size_t)list->cnt + (size_t)i];
        if (committed && committed->err)
            return why_set(why, ERR_RETRY, "cannot get the committed offset of %s [%d]: %s",
                           p->topic, (int)p->partition, rd_kafka_err2str(committed->err));
        to->partition = p->partition;
        to->committed = committed && committed->offset >= 0 ? committed->offset : -1;
        (void)str_copy(to->topic, sizeof(to->topic), str_of(p->topic));
    }
    return OK;
}

/* The groups' committed offsets of list's partitions, group after group; -1: none. All are asked at
 * once. librdkafka must never give such a question up: a broker that hangs meanwhile
 * (librdkafka#5397), or a coordinator that comes back afterwards, would end the process. So we go
 * on without an answer, and drop it when it comes after all. */
static enum err ask_committed(struct topic_admin *a, const char *const *groups, size_t n_groups,
                              const rd_kafka_topic_partition_list_t *list,
                              struct partition_lag *lags, struct why *why)
{
    enum err err = OK;
    rd_kafka_AdminOptions_t *options CLEANUP(options_clear) =
        request(a, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);

    if (a->n_open > OPEN_MAX)
        return topic_client_unreachable(&a->client, why);
    rd_kafka_AdminOptions_set_request_timeout(options, NEVER_MS, NULL, 0);
    rd_kafka_AdminOptions_set_opaque(options, (void *)++a->round);
    for (size_t g = 0; g < n_groups; g++) {
        rd_kafka_ListConsumerGroupOffsets_t *of =
            rd_kafka_ListConsumerGroupOffsets_new(groups[g], list);
        rd_kafka_ListConsumerGroupOffsets(a->client.rk, &of, 1, options, a->answers);
        rd_kafka_ListConsumerGroupOffsets_destroy(of);
        a->n_open++;
    }
    for (size_t g = 0; g < n_groups;) {
        enum err failed;
        rd_kafka_event_t *event CLEANUP(event_clear) = answer_wait(a, &failed, err ? NULL : why);
        if (!event)
            return err ? err : failed;
        a->n_open--;
        if ((uintptr_t)rd_kafka_event_opaque(event) != a->round)
            continue;
        if (!failed && !err)
            failed = committed_note(event, groups, n_groups, list, lags, why);
        err = err ? err : failed;
        g++;
    }
    for (size_t g = 0; !err && list->cnt && g < n_groups; g++)
        if (!lags[g * (size_t)list->cnt].topic[0])
            err = why_set(why, ERR_RETRY, "Kafka did not answer about group %s", groups[g]);
    return err;
}

/* Records that retention deleted do not count. A topic that was created again, and ends before the
 * committed offset, is read from its beginning. */
static void set_ends(struct partition_lag *p, const struct topic_end *end)
{
    bool there = p->committed > end->first && p->committed <= end->end;

    p->first = end->first;
    p->end = end->end;
    p->lag = end->end - (there ? p->committed : end->first);
}

/* Asks for the ends last: a group may commit meanwhile, but not beyond them. */
enum err topic_admin_lag(struct topic_admin *a, const char *const *groups, size_t n_groups,
                         const char *const *topics, size_t n_topics, struct partition_lag **ret,
                         size_t *n, struct why *why)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    enum err err = topic_client_partitions(&a->client, topics, n_topics, a->timeout_ms, list, why);
    size_t count = (size_t)list->cnt;
    struct partition_lag *lags = mem_alloc(n_groups * count + 1, sizeof(*lags));
    struct topic_end *ends = mem_alloc(count + 1, sizeof(*ends));

    rd_kafka_topic_partition_list_sort(list, NULL, NULL);
    if (!err)
        err = ask_committed(a, groups, n_groups, list, lags, why);
    if (!err)
        err = topic_client_ends(&a->client, list, a->timeout_ms, ends, why);
    for (size_t i = 0; !err && i < n_groups * count; i++)
        set_ends(&lags[i], &ends[i % count]);
    if (err) {
        free(lags);
    } else {
        *ret = lags;
        *n = count;
    }
    free(ends);
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
    enum err err = topic_client_ends(&a->client, list, a->timeout_ms, ends, why);
    *ret = -1;
    for (size_t i = 0; !err && *ret < 0 && i < n; i++)
        if (at[i].offset < ends[i].end)
            *ret = (ptrdiff_t)i;
    free(ends);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* ---- single records ------------------------------------------------------------------------- */

/* One want of each partition that is not done yet; opaque is its index plus one. */
static rd_kafka_topic_partition_list_t *next_round(const struct topic_want *wants, size_t n,
                                                   const bool *done)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);

    for (size_t i = 0; i < n; i++) {
        const struct topic_position *at = &wants[i].at;
        if (done[i] || rd_kafka_topic_partition_list_find(list, at->topic, at->partition))
            continue;
        rd_kafka_topic_partition_t *p =
            rd_kafka_topic_partition_list_add(list, at->topic, at->partition);
        p->offset = at->offset;
        p->opaque = (void *)(i + 1);
    }
    return list;
}

enum err topic_admin_read(struct topic_admin *a, const struct topic_want *wants, size_t n,
                          int timeout_ms, topic_found_fn *found, struct why *why)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    bool *done = mem_alloc(n + 1, sizeof(*done));
    size_t left = n;
    rd_kafka_message_t *message = NULL;

    do {
        rd_kafka_topic_partition_list_t *round = next_round(wants, n, done);
        int wanted = round->cnt;
        rd_kafka_assign(a->client.rk, round);
        while (wanted > 0 && (message = topic_client_poll(&a->client, deadline))) {
            rd_kafka_topic_partition_t *of = rd_kafka_topic_partition_list_find(
                round, rd_kafka_topic_name(message->rkt), message->partition);
            if (of && of->opaque) {
                size_t i = (size_t)of->opaque - 1;
                struct record record = { .user = wants[i].user };
                if (!message->err) {
                    topic_client_record(message, &record);
                    found(&record);
                }
                done[i] = true;
                of->opaque = NULL;
                wanted--;
                left--;
            }
            rd_kafka_message_destroy(message);
        }
        rd_kafka_topic_partition_list_destroy(round);
    } while (left > 0 && message);
    rd_kafka_assign(a->client.rk, NULL);
    rd_kafka_poll(a->client.rk, 0); /* collects the reason */
    free(done);
    return left ? topic_client_unreachable(&a->client, why) : OK;
}
