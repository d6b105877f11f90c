#include "pull_requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "keys.h"

extern const char view_fold_pull_request_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_pull_request_lua };

enum err pr_fold_queue(struct redis *r, const struct pr_fact *fact, const struct view_times *times,
                       struct why *why)
{
    const struct str argv[] = { key_labels(NEW_KEY, fact->pr),
                                STR_LIT(KEY_PRS),
                                times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH),
                                STR_LIT(KEY_DEMOTING),
                                STR_NUMBER(fact->pr),
                                STR_NUMBER(fact->updated_ms),
                                STR_NUMBER(fact->received_ms),
                                STR_NUMBER(times->ttl_s),
                                times->fence ? STR_NUMBER(times->fence) : STR_LIT(""),
                                STR_NUMBER(fact->offset),
                                str_of(fact->labels),
                                str_of(fact->head_sha),
                                str_of(fact->title),
                                str_of(fact->author),
                                fact->demotes ? str_of(fact->demotes) : STR_LIT("") };
    return redis_queue_script(r, &fold_script, 4, sizeof(argv) / sizeof(argv[0]), argv, why);
}

void pr_fact_clear(struct pr_fact *fact)
{
    free(fact->labels);
    free(fact->head_sha);
    free(fact->title);
    free(fact->author);
    free(fact->demotes);
    *fact = (struct pr_fact){ .labels = NULL };
}

void pr_now_clear(struct pr_now *now)
{
    free(now->labels);
    now->labels = NULL;
}

enum err pr_now_get(struct redis *r, int64_t pr, struct pr_now *ret, struct why *why)
{
    const struct redis_value *reply;
    *ret = (struct pr_now){ .labels = NULL };
    enum err err =
        redis_call(r, &reply,
                   REDIS_ARGS(STR_LIT("HMGET"), key_labels(NEW_KEY, pr), STR_LIT("labels"),
                              STR_LIT("head_sha"), STR_LIT("received_ms")),
                   why);
    if (err)
        return err;
    ret->labels = str_dup(reply->items[0].text);
    (void)str_copy(ret->head_sha, sizeof(ret->head_sha), reply->items[1].text);
    if (!str_to_i64(reply->items[2].text, &ret->received_ms))
        ret->received_ms = 0;
    return OK;
}

bool pr_now_is_past(const struct pr_now *now, struct str sha, int64_t heard_ms)
{
    return now->head_sha[0] && heard_ms > 0 && heard_ms < now->received_ms &&
           !str_eq_nocase(str_of(now->head_sha), sha);
}

enum err prs_demoting_get(struct redis *r, struct demotions **ret, struct why *why)
{
    const struct redis_value *reply;
    char reason[64];
    enum err err =
        redis_call(r, &reply, REDIS_ARGS(STR_LIT("HGETALL"), STR_LIT(KEY_DEMOTING)), why);
    if (err)
        return err;
    struct demotions *list = demotions_new();
    for (size_t i = 0; i + 1 < reply->n; i += 2) { /* pull request, repository, … */
        snprintf(reason, sizeof(reason), "pull request #%.*s is open",
                 STR_ARG(str_cut(reply->items[i].text, 20)));
        demotions_add(list, reply->items[i + 1].text, str_of(reason), 0);
    }
    *ret = list;
    return OK;
}

const struct demotion *demotion_in_force(const struct allowlist_version *version,
                                         const struct demotions *prs, struct str repo)
{
    const struct demotion *by_figures = allowlist_version_demotion(version, repo);
    const struct allowlist_entry *entry = allowlist_find(version->list, repo);
    return by_figures || !entry || entry->level != 3 ? by_figures : demotions_find(prs, repo);
}

enum err prs_by_activity(struct redis *r, size_t limit, struct view_index *ret, struct why *why)
{
    return index_newest(r, STR_LIT(KEY_PRS), limit, ret, why);
}

enum err pr_texts_get(struct redis *r, const struct view_index *prs, struct pr_text *ret,
                      struct why *why)
{
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *reply;
    for (size_t i = 0; i < prs->n; i++) {
        int64_t pr = 0;
        (void)str_to_i64(str_of(prs->at[i].name), &pr);
        redis_batch_put(&batch,
                        REDIS_ARGS(STR_LIT("HMGET"), key_labels(NEW_KEY, pr), STR_LIT("title"),
                                   STR_LIT("author"), STR_LIT("head_sha")));
    }
    for (; (reply = redis_batch_next(&batch)); ret++) {
        (void)str_copy(ret->title, sizeof(ret->title), reply->items[0].text);
        (void)str_copy(ret->author, sizeof(ret->author), reply->items[1].text);
        (void)str_copy(ret->head_sha, sizeof(ret->head_sha), reply->items[2].text);
    }
    return batch.err;
}
