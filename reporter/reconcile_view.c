/* What a pass goes by: jobs, labels, the tier in force, and what was sent before. */
#include <stdlib.h>
#include <string.h>

#include "../common/base/mem.h"
#include "../common/view/epoch.h"
#include "../common/view/labels.h"
#include "reconcile_pass.h"

#define LABELS_MAX_BYTES 8192
#define VIEW_NAME_MAX    512

/* Labels of the pull requests that the jobs and the dispatch belong to. */
struct label_sets {
    struct pr_labels *at;
    size_t n;
};

static void label_sets_clear(struct label_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        free((char *)(uintptr_t)sets->at[i].lines);
    free(sets->at);
}

static bool is_among(const struct label_sets *sets, int64_t pr)
{
    for (size_t i = 0; i < sets->n; i++)
        if (sets->at[i].pr == pr)
            return true;
    return false;
}

static enum err label_sets_read(struct redis *r, const struct pass *p, struct label_sets *ret,
                                struct why *why)
{
    struct buf CLEANUP(buf_clear) lines;
    buf_init(&lines, LABELS_MAX_BYTES);
    ret->at = mem_alloc(p->jobs.n + 1, sizeof(*ret->at));
    for (size_t i = 0; i <= p->jobs.n; i++) {
        int64_t pr = i < p->jobs.n ? p->jobs.at[i].pr_number : p->dispatch.pr;
        if (pr <= 0 || is_among(ret, pr))
            continue;
        buf_reset(&lines);
        enum err err = labels_get(r, pr, &lines, why);
        if (err != OK)
            return err;
        ret->at[ret->n++] = (struct pr_labels){ pr, str_dup(buf_str(&lines)) };
    }
    return OK;
}

/* They are what people wait for, when not all can be told at once. */
static void completed_first(struct wanted_check *at, size_t n)
{
    struct wanted_check *copy = mem_alloc(n + 1, sizeof(*copy));
    size_t to = 0;
    memcpy(copy, at, n * sizeof(*copy));
    for (int completed = 1; completed >= 0; completed--)
        for (size_t i = 0; i < n; i++)
            if (copy[i].completed == completed)
                at[to++] = copy[i];
    free(copy);
}

static void wanted_work_out(struct pass *p, const struct label_sets *labels)
{
    struct allowlist_feed *feed = p->target->reconcile->reporter->feed;
    const struct allowlist_version *version = allowlist_feed_get(feed);
    const struct allowlist_entry *entry =
        version->list ? allowlist_find(version->list, str_of(p->target->repo)) : NULL;
    const struct commit_view view = {
        .level = entry ? entry->level : 0,
        .device = entry ? entry->device : STR_NONE,
        .demoted = allowlist_version_demotion(version, str_of(p->target->repo)) != NULL,
        .prs = labels->at,
        .n_prs = labels->n,
        .jobs = p->jobs.at,
        .n_jobs = p->jobs.n,
    };
    p->wanted = mem_alloc(p->jobs.n + 1, sizeof(*p->wanted)); /* and the aggregate's */
    p->n = desired_checks(&view, p->wanted);
    completed_first(p->wanted, p->n);
    p->may_start = p->has_dispatch && check_may_start(&view, p->dispatch.pr);
    allowlist_feed_release(feed, version);
}

struct check_slot pass_slot(const struct wanted_check *w)
{
    return (struct check_slot){ str_of(w->name), str_of(w->slot) };
}

static enum err sent_read(struct pass *p, struct why *why)
{
    struct buf CLEANUP(buf_clear) name;
    struct check_slot *slots = mem_alloc(p->n + 1, sizeof(*slots));
    buf_init(&name, VIEW_NAME_MAX);
    for (size_t i = 0; i < p->n; i++)
        slots[i] = pass_slot(&p->wanted[i]);
    if (p->has_dispatch)
        slots[p->n] = aggregate_slot(&name, p->dispatch.repo);
    p->sent = mem_alloc(p->n + 1, sizeof(*p->sent));
    enum err err = checks_sent_get(p->target->reconcile->redis, str_of(p->target->head_sha), slots,
                                   p->n + p->has_dispatch, p->sent, why);
    free(slots);
    return err;
}

/* More jobs than the set of a commit holds: those of the dispatch are read by its own index. */
static enum err more_read(struct pass *p, struct why *why)
{
    if (!p->has_dispatch || p->jobs.n < HEAD_JOBS_MAX)
        return OK;
    return jobs_of_dispatch(p->target->reconcile->redis, str_of(p->dispatch.delivery),
                            str_of(p->dispatch.repo), AGGREGATE_JOBS_MAX, &p->more, why);
}

static enum err view_read(struct pass *p, struct why *why)
{
    struct redis *redis = p->target->reconcile->redis;
    struct label_sets CLEANUP(label_sets_clear) labels = { NULL, 0 };
    struct str sha = str_of(p->target->head_sha), repo = str_of(p->target->repo);
    enum err err = jobs_of_head(redis, sha, repo, &p->jobs, why);
    if (err == OK)
        err = dispatch_of_head(redis, sha, repo, &p->has_dispatch, &p->dispatch, why);
    if (err == OK)
        err = run_answers_get(redis, sha, repo, &p->answers, why);
    if (err == OK)
        err = more_read(p, why);
    if (err == OK)
        err = label_sets_read(redis, p, &labels, why);
    if (err != OK)
        return err;
    wanted_work_out(p, &labels);
    return sent_read(p, why);
}

/* What a view lacks that was emptied meanwhile would pass for what is not wanted: the same epoch
 * before and after says that it was whole all the while. */
enum err pass_view_read(struct pass *p, struct why *why)
{
    struct redis *redis = p->target->reconcile->redis;
    int64_t before = 0, after = 0;
    enum err err = view_epoch_get(redis, &before, why);
    if (err == OK && before != 0)
        err = view_read(p, why);
    if (err == OK && before != 0)
        err = view_epoch_get(redis, &after, why);
    p->target->reconcile->view_lost = err == OK && (before == 0 || after != before);
    if (p->target->reconcile->view_lost)
        return why_set(why, ERR_RETRY, "the view is being rebuilt");
    return err;
}
