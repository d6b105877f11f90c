#include <stdio.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/model/ids.h"
#include "../common/worker/retry_ladder.h"
#include "ended_runs.h"
#include "fold.h"
#include "which_checks.h"

#define AGAIN_MS     100
#define PENDING_STEP 2 /* of the ladder: 1 m */

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
    work_done(fact->work);
    fold_forget(f, fact);
}

/* Everything that follows from the fact is reported. What was not stored is folded again, so that
 * what is put then is the record of then, not of now. */
static void fact_posted(void *opaque)
{
    struct fact *fact = opaque;
    if (!fact->not_stored) {
        fold_finish(fact->fold, fact);
        return;
    }
    fact->not_stored = false;
    fact->state = FACT_READ;
    fact->look_again_ms = clock_mono_ms() + AGAIN_MS;
}

/* What Kafka refuses it refuses again: one such record must not hold up its partition for ever. */
static bool not_stored(void *opaque, enum err err, const char *reason)
{
    struct fact *fact = opaque;
    fact->not_stored = true;
    if (err == ERR_REFUSE)
        fact_refuse(fact, "refused", reason);
    return true;
}

static void fact_post(struct fact *fact, enum topic topic, struct str key, struct str value,
                      const struct headers *headers)
{
    const struct post post = {
        .topic = topic,
        .key = key,
        .value = value,
        .headers = headers,
        .failed = not_stored,
        .opaque = fact,
    };
    work_put(fact->work, &post);
}

static void mark_dirty(struct fact *fact, const char *sha, struct str repo, struct str reason,
                       const struct headers *headers)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(DIRTY_KEY_MAX);
    if (!sha || !*sha)
        return;
    reporter_put_dirty_key(&key, str_of(sha), repo);
    fact_post(fact, TOPIC_RECONCILE, buf_str(&key), reason, headers);
}

static void publish_job(struct fold *f, struct fact *fact, const struct result_record *merged)
{
    struct buf CLEANUP(buf_clear) json = BUF_INIT(RECORD_MAX_BYTES);
    struct headers headers;
    headers_init(&headers);
    result_record_to_json(merged, &json);
    result_record_to_headers(merged, &headers);
    if (merged->top_level >= 2) /* a row that was begun is ended, also after a demotion */
        fact_post(fact, TOPIC_RESULTS, str_of(merged->key), buf_str(&json), &headers);
    bool self = result_record_is_self(merged); /* nightly and periodic: no check run anywhere */
    /* A check run that was started is ended, also after a demotion. GitHub is asked about the run
     * of an open job. */
    if ((merged->top_level >= 3 && !self) || job_is_open(merged))
        mark_dirty(fact, merged->head_sha, str_of(merged->repo),
                   str_of(job_state_name(merged->state)), NULL);
    /* Whether it exists upstream is asked under the upstream's name, at the cost of the repository
     * in the header (pass_start). */
    if (merged->level >= 2 && self) {
        headers_init(&headers);
        headers_put(&headers, "repo", str_of(merged->repo));
        mark_dirty(fact, result_record_commit(merged), str_of(f->reporter->upstream_repo),
                   str_of(merged->event_type), &headers);
    }
}

/* Also those whose label went: the gate is asked again for each of them. */
static void publish_labels(struct fold *f, struct fact *fact)
{
    if (!*fact->pr.labels && !fact->label_changed)
        return;
    const struct allowlist_version *version = allowlist_feed_get(f->reporter->feed);
    size_t n = allowlist_size(version->list);
    for (size_t i = 0; i < n; i++) {
        const struct allowlist_entry *entry = allowlist_at(version->list, i);
        if (entry->level == 3 && (labels_have_device(fact->pr.labels, entry->device) ||
                                  labels_have_device(fact->label_changed, entry->device)))
            mark_dirty(fact, fact->pr.head_sha, entry->repo, STR_LIT("labels"), NULL);
    }
    allowlist_feed_release(f->reporter->feed, version);
}

void fold_publish(struct fold *f, struct fact *fact, const struct result_record *merged)
{
    if (fact->kind == FACT_CALLBACK)
        publish_job(f, fact, merged);
    else if (fact->kind == FACT_PULL_REQUEST)
        publish_labels(f, fact);
    else if (fact->kind == FACT_OUTCOME && fact->outcome.level >= 4)
        mark_dirty(fact, fact->outcome.head_sha, str_of(fact->outcome.repo),
                   str_of(outcome_kind_name(fact->outcome.outcome)), NULL);
    fact->state = FACT_PUBLISHING;
    work_then(fact->work, fact_posted, fact);
}

void fold_park(struct fold *f, struct fact *fact)
{
    const struct park park = { .wait_ms = retry_wait_ms(PENDING_STEP),
                               .attempt = PENDING_STEP,
                               .error = fact->error,
                               .label = "dispatch_unknown" };
    if (fact->step == FACT_TO_DELAY)
        work_park(fact->work, &park);
    else
        work_dead(fact->work, fact->class, fact->error);
    work_done(fact->work);
    fold_forget(f, fact);
}
