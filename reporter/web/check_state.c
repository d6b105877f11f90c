#include "check_state.h"

#include <string.h>

#include "../wanted_check.h"

/* Why there is none. */
static enum err absent(const struct web_view *w, const struct dispatch_view *d, bool started,
                       struct check_state *ret, struct why *why)
{
    struct pr_now CLEANUP(pr_now_clear) now = { .labels = NULL };
    enum err err = pr_now_get(w->redis, d->pr, &now, why);
    if (err)
        return err;
    bool past = pr_now_is_past(&now, str_of(d->head_sha), d->received_ms);
    int64_t until_ms = pipeline_budget_until(w->pipeline);
    ret->status = "absent";
    ret->absent = !started            ? "not_dispatched"
                  : *ret->sent.digest ? "refused"
                  : past              ? "newer_commit"
                  : until_ms          ? "budget"
                                      : "not_yet";
    ret->until_ms = strcmp(ret->absent, "budget") == 0 ? until_ms : 0;
    ret->blocks = !past && !ret->other; /* nobody waits for it on a commit that is not the head */
    return OK;
}

enum err check_state_get(const struct web_view *w, const struct api_delivery *delivery,
                         const struct dispatch_view *d, struct check_state *ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) name = BUF_INIT(REPO_MAX + 8);
    const struct check_slot slot = aggregate_slot(&name, d->repo);
    struct check_sent *sent = &ret->sent;
    struct dispatch_view head;
    bool found = false;
    if (d->level < 3 || !*d->head_sha)
        return OK;
    enum err err = checks_sent_get(w->redis, str_of(d->head_sha), &slot, 1, sent, why);
    if (err || (d->level < 4 && !sent->id))
        return err;
    err = dispatch_of_head(w->redis, str_of(d->head_sha), str_of(d->repo), &found, &head, why);
    if (err || !found)
        return err;
    struct jobs_score score =
        score_of_downstream(delivery->jobs, delivery->n_jobs, str_of(d->repo));
    ret->other = strcmp(head.delivery, d->delivery) != 0;
    if (!sent->id)
        return absent(w, d, score.jobs > 0 || !dispatch_was_dropped(d), ret, why);
    if (!*sent->state) /* an older program sent it */
        (void)str_copy(sent->state, sizeof(sent->state),
                       str_of(!sent->completed ? "in_progress"
                              : score.failed   ? "failure"
                                               : "success"));
    ret->status = sent->completed ? "completed" : sent->state;
    ret->conclusion = sent->completed ? sent->state : NULL;
    ret->blocks = !ret->other && (!sent->completed || conclusion_is_bad(sent->state));
    return OK;
}
