#include <ctype.h>
#include <stdio.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/model/ids.h"
#include "fold.h"
#include "park.h"

#define RECONCILE_KEY_MAX (SHA_MAX + 1 + REPO_MAX)
#define LOST_WAIT_MS      100

void fold_forget(struct fold *f, struct fact *fact)
{
    DL_DELETE(f->facts, fact);
    f->n_facts--;
    fact_free(fact);
}

void fold_finish(struct fold *f, struct fact *fact)
{
    if (fact->kind == FACT_CALLBACK)
        FAULT_POINT("fold.published");
    record_done(fact->record);
    role_progress(f->role);
    fold_forget(f, fact);
}

/* Everything that was put for the fact is reported. */
static void settled(struct fact *fact)
{
    if (!fact->record) {
        fold_forget(fact->fold, fact);
        return;
    }
    if (fact->lost) { /* folded again, so that what is put is the record of then, not of now */
        fact->lost = false;
        fact->state = FACT_READ;
        fact->look_again_ms = clock_mono_ms() + LOST_WAIT_MS;
        return;
    }
    fold_finish(fact->fold, fact);
}

static void released(struct fact *fact)
{
    if (--fact->unacknowledged == 0)
        settled(fact);
}

/* What Kafka refuses it refuses again: one such record must not hold up its partition for ever. */
static void not_stored(struct fact *fact, enum err err, const char *reason)
{
    log_warn("fold_not_published", LOG_STR("error", str_of(reason)));
    fact->lost = true;
    if (err == ERR_REFUSE && fact->step == FACT_FOLD)
        fact_refuse(fact, "refused", reason);
}

static void written(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct fact *fact = opaque;
    (void)at;
    if (err != OK && fact->record)
        not_stored(fact, err, reason);
    released(fact);
}

/* Counted once it is there. */
static void parked(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    const struct fact *fact = opaque;
    struct metrics *m = role_metrics(fact->fold->role);
    if (err == OK && fact->step == FACT_TO_DELAY)
        metrics_add(m, METRIC_DELAYED, METRIC_LABELS(STR_LIT("dispatch_unknown")), 1);
    else if (err == OK)
        metrics_add(m, METRIC_DLQ, METRIC_LABELS(STR_LIT("fold"), str_of(fact->class)), 1);
    written(opaque, err, at, reason);
}

/* A put that is not queued is made up for when the others are reported. */
static void put(struct fold *f, struct fact *fact, enum topic topic, struct str key,
                struct str value, const struct headers *headers)
{
    struct why why;
    fact->unacknowledged++;
    enum err err = topic_writer_put(f->writer, f->reporter->topics.name[topic], key, value, headers,
                                    written, fact, &why);
    if (err == OK)
        return;
    fact->unacknowledged--;
    f->crowded = true;
    if (err == ERR_RETRY)
        fact->lost = true;
    else
        not_stored(fact, err, why.text);
}

static void mark_dirty(struct fold *f, struct fact *fact, const char *sha, struct str repo,
                       struct str reason)
{
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, RECONCILE_KEY_MAX);
    if (!sha || !*sha) /* nightly and periodic: no check run anywhere */
        return;
    buf_puts(&key, sha);
    buf_putc(&key, '/');
    for (size_t i = 0; i < repo.len; i++) /* one key, and so one owner, however it is spelled */
        buf_putc(&key, (char)tolower((unsigned char)repo.ptr[i]));
    put(f, fact, TOPIC_RECONCILE, buf_str(&key), reason, NULL);
}

/* The commit is the delivery's name; whether it exists upstream is asked under the upstream's name
 * (reconcile_commit.h). */
static void ask_for_commit(struct fold *f, struct fact *fact, const struct result_record *merged)
{
    if (merged->level >= 2 && result_record_is_self(merged) &&
        sha_valid(str_of(merged->delivery_id)))
        mark_dirty(f, fact, merged->delivery_id, str_of(f->reporter->upstream_repo),
                   str_of(merged->event_type));
}

/* Held while putting, so that a quick report cannot settle a fact that is not complete. */
static void hold(struct fact *fact)
{
    fact->state = FACT_PUBLISHING;
    fact->unacknowledged = 1;
}

void fold_publish_job(struct fold *f, struct fact *fact, const struct result_record *merged)
{
    struct buf CLEANUP(buf_clear) json;
    struct headers headers;
    hold(fact);
    buf_init(&json, RECORD_MAX_BYTES);
    headers_init(&headers);
    result_record_to_json(merged, &json);
    result_record_to_headers(merged, &headers);
    if (merged->top_level >= 2) /* a row that was begun is ended, also after a demotion */
        put(f, fact, TOPIC_RESULTS, str_of(merged->key), buf_str(&json), &headers);
    if (merged->top_level >= 3) /* one that was started is ended, also after a demotion */
        mark_dirty(f, fact, merged->head_sha, str_of(merged->repo),
                   str_of(job_state_name(merged->state)));
    ask_for_commit(f, fact, merged);
    released(fact);
}

void fold_publish_outcome(struct fold *f, struct fact *fact)
{
    hold(fact);
    if (fact->outcome.level >= 3)
        mark_dirty(f, fact, fact->outcome.head_sha, str_of(fact->outcome.repo),
                   str_of(outcome_kind_name(fact->outcome.outcome)));
    released(fact);
}

static bool has_device(const char *lines, struct str device)
{
    struct str rest = str_of(lines), line, found;
    while (str_split(&rest, '\n', &line))
        if (ciflow_label_device(line, &found) && str_eq(found, device))
            return true;
    return false;
}

/* Also those whose label went: the gate is asked again for each of them. */
void fold_publish_labels(struct fold *f, struct fact *fact)
{
    hold(fact);
    if (*fact->labels.in_force || fact->labels.changed) {
        const struct allowlist_version *version = allowlist_feed_get(f->reporter->feed);
        size_t n = version->list ? allowlist_size(version->list) : 0;
        for (size_t i = 0; i < n; i++) {
            const struct allowlist_entry *entry = allowlist_at(version->list, i);
            if (entry->level == 3 && (has_device(fact->labels.in_force, entry->device) ||
                                      has_device(fact->labels.changed, entry->device)))
                mark_dirty(f, fact, fact->labels.head_sha, entry->repo, STR_LIT("labels"));
        }
        allowlist_feed_release(f->reporter->feed, version);
    }
    released(fact);
}

void fold_publish_parked(struct fold *f, struct fact *fact)
{
    struct why why;
    enum err err;
    const char *class = fact->step == FACT_TO_DELAY ? "delayed" : fact->class;
    hold(fact);
    fact->unacknowledged++;
    if (fact->step == FACT_TO_DELAY)
        err = park_in_delay(f->writer, &f->reporter->topics, fact->record, fact->error, parked,
                            fact, &why);
    else
        err = park_in_dlq(f->writer, &f->reporter->topics, fact->record, fact->class, fact->error,
                          parked, fact, &why);
    if (err != OK) {
        fact->unacknowledged--;
        fact->lost = true;
        f->crowded = true;
    } else {
        log_warn("parked", LOG_STR("class", str_of(class)),
                 LOG_STR("delivery", headers_get(&fact->record->headers, "delivery")),
                 LOG_STR("repo", headers_get(&fact->record->headers, "repo")),
                 LOG_STR("error", str_of(fact->error)));
    }
    released(fact);
}
