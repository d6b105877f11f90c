#include "topic_admin.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "topic_admin_inner.h"

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
    if (a->client.rk)
        rd_kafka_destroy(a->client.rk);
    topic_client_clear(&a->client);
    free(a);
}

enum err topic_admin_brokers(struct topic_admin *a, int *ret, struct why *why)
{
    const struct rd_kafka_metadata *metadata;

    if (rd_kafka_metadata(a->client.rk, 0, NULL, &metadata, a->timeout_ms)) {
        rd_kafka_poll(a->client.rk, 0);
        return topic_client_unreachable(&a->client, why);
    }
    *ret = metadata->broker_cnt;
    rd_kafka_metadata_destroy(metadata);
    return OK;
}

rd_kafka_AdminOptions_t *topic_admin_request(struct topic_admin *a, int op)
{
    char text[128];
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(a->client.rk, (rd_kafka_admin_op_t)op);

    rd_kafka_AdminOptions_set_request_timeout(options, a->timeout_ms, text, sizeof(text));
    return options;
}

rd_kafka_event_t *topic_admin_await(struct topic_admin *a, enum err *err, struct why *why)
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

void topic_admin_event_clear(rd_kafka_event_t **event)
{
    if (*event)
        rd_kafka_event_destroy(*event);
}

/* ---- create --------------------------------------------------------------------------------- */

static rd_kafka_NewTopic_t *new_topic(const struct topic_spec *spec, const char *prefix,
                                      int replication, struct why *why)
{
    char name[256], text[256], min_insync[16];

    snprintf(name, sizeof(name), "%s%s", prefix, spec->name);
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(name, spec->partitions, replication, text, sizeof(text));
    if (!topic) {
        (void)why_set(why, ERR_REFUSE, "topic %s: %s", name, text);
        return NULL;
    }
    for (size_t i = 0; i < spec->n_configs; i++)
        rd_kafka_NewTopic_set_config(topic, spec->configs[i].name, spec->configs[i].value);
    if (!topic_spec_config(spec, "min.insync.replicas")) {
        snprintf(min_insync, sizeof(min_insync), "%d", replication > 2 ? 2 : 1);
        rd_kafka_NewTopic_set_config(topic, "min.insync.replicas", min_insync);
    }
    return topic;
}

static enum err created(const rd_kafka_event_t *event, struct why *why)
{
    const rd_kafka_CreateTopics_result_t *result =
        rd_kafka_event_CreateTopics_result((rd_kafka_event_t *)event);
    size_t n;
    const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(result, &n);

    for (size_t i = 0; i < n; i++) {
        rd_kafka_resp_err_t code = rd_kafka_topic_result_error(topics[i]);
        if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            return why_set(why, ERR_REFUSE, "topic %s: %s", rd_kafka_topic_result_name(topics[i]),
                           rd_kafka_topic_result_error_string(topics[i]));
    }
    return OK;
}

enum err topic_admin_create(struct topic_admin *a, const struct topic_spec *spec,
                            const char *prefix, int replication, struct why *why)
{
    char text[128];
    enum err err;
    rd_kafka_NewTopic_t *topic = new_topic(spec, prefix, replication, why);

    if (!topic)
        return ERR_REFUSE;
    rd_kafka_AdminOptions_t *options = topic_admin_request(a, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_operation_timeout(options, a->timeout_ms, text, sizeof(text));
    rd_kafka_CreateTopics(a->client.rk, &topic, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(topic_admin_event_clear) = topic_admin_await(a, &err, why);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    return !err ? created(event, why) : err;
}

/* ---- compare -------------------------------------------------------------------------------- */

/* Where the reports go while the cluster's topics are listed. */
struct comparison {
    const struct topic_specs *specs;
    const char *prefix;
    struct topic_report *reports;
};

static void differ(struct topic_report *report, const char *what, const char *is,
                   const char *should)
{
    size_t len = strlen(report->detail);

    report->state = TOPIC_STATE_DIFFERS;
    report->differences++;
    snprintf(report->detail + len, sizeof(report->detail) - len, "%s%s is %s, not %s",
             len ? "; " : "", what, is, should);
}

static void compare_partitions(void *opaque, const char *topic, int partitions)
{
    struct comparison *c = opaque;
    size_t prefix_len = strlen(c->prefix);

    if (strncmp(topic, c->prefix, prefix_len))
        return;
    for (size_t i = 0; i < c->specs->n; i++) {
        const struct topic_spec *spec = &c->specs->at[i];
        char is[16], should[16];
        if (strcmp(spec->name, topic + prefix_len))
            continue;
        c->reports[i].state = TOPIC_STATE_OK;
        snprintf(is, sizeof(is), "%d", partitions);
        snprintf(should, sizeof(should), "%d", spec->partitions);
        if (partitions != spec->partitions)
            differ(&c->reports[i], "partitions", is, should);
    }
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

rd_kafka_event_t *topic_admin_describe(struct topic_admin *a, const char *topic, enum err *err,
                                       struct why *why)
{
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_AdminOptions_t *options = topic_admin_request(a, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_DescribeConfigs(a->client.rk, &resource, 1, options, a->answers);
    rd_kafka_event_t *event = topic_admin_await(a, err, why);
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
    rd_kafka_event_t *event CLEANUP(topic_admin_event_clear) =
        topic_admin_describe(a, name, &err, why);
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
    rd_kafka_AdminOptions_t *options = topic_admin_request(a, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);
    rd_kafka_AlterConfigs(a->client.rk, &resource, 1, options, a->answers);
    rd_kafka_event_t *event CLEANUP(topic_admin_event_clear) = topic_admin_await(a, &err, why);
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
    rd_kafka_event_t *event CLEANUP(topic_admin_event_clear) =
        topic_admin_describe(a, name, &err, why);
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

#define LOOK_AGAIN_MS 20

enum err topic_admin_await_topics(struct topic_admin *a, const struct topic_specs *specs,
                                  const char *prefix, struct why *why)
{
    struct topic_report *reports = mem_alloc(specs->n, sizeof(*reports));
    struct comparison comparison = { specs, prefix, reports };
    int64_t deadline = clock_mono_ms() + a->timeout_ms;
    enum err err;

    for (;; rd_kafka_poll(a->client.rk, LOOK_AGAIN_MS)) {
        size_t missing = 0;
        for (size_t i = 0; i < specs->n; i++)
            reports[i] = (struct topic_report){ .state = TOPIC_STATE_MISSING };
        err = topic_client_topics(&a->client, a->timeout_ms, compare_partitions, &comparison, why);
        while (missing < specs->n && reports[missing].state != TOPIC_STATE_MISSING)
            missing++;
        if (err || missing == specs->n)
            break;
        if (clock_mono_ms() < deadline)
            continue;
        err = why_set(why, ERR_RETRY, "topic %s%s was made, but no broker tells of it", prefix,
                      specs->at[missing].name);
        break;
    }
    free(reports);
    return err;
}

enum err topic_admin_check(struct topic_admin *a, const struct topic_specs *specs,
                           const char *prefix, struct topic_report *reports, struct why *why)
{
    struct comparison comparison = { specs, prefix, reports };

    for (size_t i = 0; i < specs->n; i++)
        reports[i] = (struct topic_report){ .state = TOPIC_STATE_MISSING };
    enum err err =
        topic_client_topics(&a->client, a->timeout_ms, compare_partitions, &comparison, why);
    if (err || topic_client_is_mock(&a->client, a->timeout_ms))
        return err; /* it has no configs, and never answers when it is asked for them */
    for (size_t i = 0; !err && i < specs->n; i++)
        if (reports[i].state != TOPIC_STATE_MISSING)
            err = compare_topic(a, &specs->at[i], prefix, &reports[i], why);
    return err;
}
