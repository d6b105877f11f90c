/* Records as Kafka hands them out, of every topic but those of tasks (task_fuzz.c): a line with the
 * topic, lines of headers ("key:" is the key), an empty line, the value. What is taken keeps its
 * promises, and survives being written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/ids.h"
#include "common/view/allowlist_feed.h"
#include "input.h"
#include "reporter/fact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reporter reporter = { .upstream_repo = "pytorch/pytorch" };
static struct event_facts scratch;

/* ---- events ---- */

static void check_event(const struct headers *headers)
{
    struct event event, same;
    struct headers again;
    struct why why;
    if (event_from_headers(&event, headers, &why))
        return;
    must(delivery_valid(event.delivery) && event.received_ms > 0 && event.pr >= 0);
    headers_init(&again);
    event_to_headers(&event, &again);
    must(!event_from_headers(&same, &again, &why) && same.kind == event.kind &&
         same.pr == event.pr && same.received_ms == event.received_ms &&
         str_eq(same.delivery, event.delivery) && str_eq(same.head_sha, event.head_sha) &&
         str_eq(same.source, event.source));
}

/* ---- what the fold takes: callbacks, dispatches, events ---- */

static void check_result(const struct result_record *job)
{
    struct result_record same;
    struct headers beside;
    struct buf json, json_again;
    struct why why;
    buf_init(&json, 1u << 24);
    buf_init(&json_again, 1u << 24);
    headers_init(&beside);
    result_record_to_json(job, &json);
    result_record_to_headers(job, &beside);
    must(!buf_full(&json) && !result_record_from_json(buf_str(&json), &same, &why));
    result_record_from_headers(&same, &beside);
    must(same.state == job->state && strcmp(same.key, job->key) == 0 &&
         same.pr_number == job->pr_number && same.dispatched_ms == job->dispatched_ms);
    result_record_to_json(&same, &json_again);
    must(str_eq(buf_str(&json), buf_str(&json_again)));
    result_record_clear(&same);
    buf_clear(&json);
    buf_clear(&json_again);
}

static void check_fact(const struct record *record)
{
    struct fact *fact = fact_new(record, &reporter, &scratch);
    if (fact->kind == FACT_CALLBACK) {
        const struct result_record *job = &fact->callback.job;
        must(repo_valid(str_of(job->repo)) && delivery_valid(str_of(job->delivery_id)));
        must(job->level >= 1 && job->level <= 4 && job->pr_number >= 0);
        must(job->state >= JOB_IN_PROGRESS && fact->callback.received_ms > 0);
        check_result(job);
    } else if (fact->kind == FACT_PULL_REQUEST) {
        must(fact->pr.pr > 0 && fact->pr.labels);
    }
    must((fact->step == FACT_TO_DLQ) == !!fact->error[0]);
    fact_free(fact);
}

/* ---- results, and rows of the view ---- */

static void check_row(struct headers *fields)
{
    struct result_field written[RESULT_FIELDS_MAX];
    struct result_record row, same;
    result_record_init(&row);
    result_record_init(&same);
    for (size_t i = 0; i < fields->n; i++)
        result_record_set(&row, fields->at[i].name, fields->at[i].value);
    size_t n = result_record_fields(&row, written);
    must(n <= RESULT_FIELDS_MAX);
    for (size_t i = 0; i < n; i++)
        result_record_set(&same, written[i].name, written[i].value);
    must(same.state == row.state && same.pr_number == row.pr_number);
    result_record_times(&row);
    must(row.queue_ms >= -1 && row.execution_ms >= -1);
    result_record_clear(&row);
    result_record_clear(&same);
}

static void check_results(const struct record *record, struct headers *headers)
{
    struct result_record job;
    struct why why;
    check_row(headers);
    if (result_record_from_json(record->value, &job, &why))
        return;
    result_record_from_headers(&job, headers);
    check_result(&job);
    result_record_clear(&job);
}

/* ---- the topic allowlist ---- */

static void check_allowlist(const struct record *record, const struct headers *headers)
{
    struct allowlist_feed *store = NULL;
    struct why why;
    must(!allowlist_feed_new(&store, NULL, NULL, NULL, NULL, &why));
    enum err err = allowlist_feed_apply(store, record->key, record->value, headers, &why);
    const struct allowlist_version *v = allowlist_feed_get(store);
    must(!err || (!v->list && !v->providers && !v->demotions));
    if (v->demotions) {
        struct demotions *same = NULL;
        struct buf json;
        buf_init(&json, DEMOTIONS_MAX_BYTES);
        demotions_to_json(v->demotions, 1700000000000, &json);
        must(!demotions_from_json(buf_str(&json), &same, &why) &&
             demotions_equal(v->demotions, same));
        demotions_free(same);
        buf_clear(&json);
    }
    allowlist_feed_release(store, v);
    allowlist_feed_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct record record = { 0 };
    struct headers headers;
    char topic[96];
    struct why why;
    if (!reporter.topics.name[0][0])
        must(!topics_init(&reporter.topics, "", &why));
    if (!str_copy(topic, sizeof(topic), input_line(&text)))
        return 0;
    input_headers(&text, &headers);
    record.at.topic = topic;
    record.key = headers_get(&headers, "key");
    record.value = text; /* absent: a tombstone */
    headers_copy(&record.headers, &headers);
    if (strcmp(topic, "allowlist") == 0) {
        check_allowlist(&record, &headers);
    } else if (strcmp(topic, "results") == 0) {
        check_results(&record, &headers);
    } else {
        check_event(&headers);
        check_fact(&record);
    }
    return 0;
}
