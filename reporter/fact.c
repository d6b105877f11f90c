#include "fact.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/model/demotions.h"

void fact_refuse(struct fact *fact, const char *class, const char *error)
{
    fact->step = FACT_TO_DLQ;
    fact->class = class;
    snprintf(fact->error, sizeof(fact->error), "%s", error);
}

static char *ciflow_labels(const struct event_facts *facts)
{
    struct buf CLEANUP(buf_clear) text;
    struct str device;
    buf_init(&text, EVENT_MAX_LABELS * sizeof(facts->labels[0]));
    for (size_t i = 0; i < facts->n_labels; i++) {
        if (!ciflow_label_device(str_of(facts->labels[i]), &device))
            continue;
        if (text.len > 0)
            buf_putc(&text, '\n');
        buf_puts(&text, facts->labels[i]);
    }
    return str_dup(buf_str(&text));
}

/* What it brought to the default branch, if anything. */
static void push_fact_read(struct fact *fact, int64_t received_ms)
{
    struct why ignored; /* the router puts what it cannot read into the DLQ */
    enum err err = push_read(fact->record->value, &fact->push, &ignored);
    fact->kind = !err && fact->push.n > 0 ? FACT_PUSH : FACT_NOTHING;
    if (!fact->push.pushed_s)
        fact->push.pushed_s = received_ms / 1000;
}

static enum err event_fact_read(struct fact *fact, struct event_facts *facts, const char *upstream,
                                struct why *why)
{
    struct event event;
    struct str device;
    enum err err = event_from_headers(&event, &fact->record->headers, why);
    if (err)
        return err;
    if (event.kind == EVENT_PUSH && event.pr == 0) {
        push_fact_read(fact, event.received_ms);
        return OK;
    }
    if (event.kind != EVENT_PULL_REQUEST || event.pr <= 0) {
        fact->kind = FACT_NOTHING;
        return OK;
    }
    err = event_scan(event.kind, fact->record->value, facts, why);
    if (err)
        return err;
    struct why ignored;
    fact->pr = (struct pr_fact){ .pr = event.pr,
                                 .received_ms = event.received_ms,
                                 .offset = fact->record->at.offset,
                                 .labels = ciflow_labels(facts),
                                 .head_sha = mem_dup(facts->head_sha),
                                 .title = mem_dup(facts->title),
                                 .author = mem_dup(facts->author),
                                 .demotes = str_dup(demotion_of_pull(facts, str_of(upstream))) };
    if (clock_parse(str_of(facts->updated_at), &fact->pr.updated_ms, &ignored))
        fact->pr.updated_ms = event.received_ms;
    if (ciflow_label_device(str_of(facts->label), &device))
        fact->label_changed = mem_dup(facts->label);
    return OK;
}

struct fact *fact_new(const struct record *record, const struct reporter *reporter,
                      struct event_facts *scratch)
{
    struct fact *fact = mem_alloc(1, sizeof(*fact));
    struct why why = { "" };
    enum err err;
    fact->record = record;
    switch (topics_find(&reporter->topics, str_of(record->at.topic))) {
    case TOPIC_CALLBACKS:
        fact->kind = FACT_CALLBACK;
        err = callback_fact_read(&record->headers, record->value, reporter->upstream_repo,
                                 &fact->callback, &why);
        break;
    case TOPIC_DISPATCHES:
        err = outcome_from_json(record->value, &fact->outcome, &why);
        fact->kind = str_is(str_of(fact->outcome.kind), task_kind_name(TASK_DISPATCH))
                         ? FACT_OUTCOME
                         : FACT_CLAIM;
        break;
    default:
        fact->kind = FACT_PULL_REQUEST;
        err = event_fact_read(fact, scratch, reporter->upstream_repo, &why);
    }
    if (err) {
        fact->kind = FACT_NOTHING;
        fact_refuse(fact, "poison", why.text);
    }
    return fact;
}

void fact_free(struct fact *fact)
{
    if (!fact)
        return;
    if (fact->kind == FACT_CALLBACK)
        result_record_clear(&fact->callback.job);
    pr_fact_clear(&fact->pr);
    free(fact->label_changed);
    push_clear(&fact->push);
    free(fact);
}
