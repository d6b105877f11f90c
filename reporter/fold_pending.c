/* Callbacks that came before anyone knew of their dispatch: the fold finds out, or waits. */
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/view/claims.h"
#include "../common/view/dispatches.h"
#include "fold.h"

#define LOOK_MS 1000
#define HOLD_MS 10000

struct target {
    int64_t pr, dispatched_ms;
    char head_sha[SHA_MAX + 1];
};

static enum err target_find(struct redis *redis, const struct result_record *job, bool *found,
                            struct target *ret, struct why *why)
{
    struct str delivery = str_of(job->delivery_id), repo = str_of(job->repo);
    struct dispatch_view view;
    enum err err = dispatch_view_get(redis, delivery, repo, found, &view, why);
    if (err)
        return err;
    if (*found && view.dispatched_ms > 0) {
        *ret = (struct target){ .pr = view.pr, .dispatched_ms = view.dispatched_ms };
        str_copy(ret->head_sha, sizeof(ret->head_sha), str_of(view.head_sha));
        return OK;
    }
    struct dispatch_record record;
    err = dispatch_record_get(redis, delivery, repo, found, &record, why);
    if (err || !*found)
        return err;
    *ret = (struct target){ .pr = record.pr, .dispatched_ms = record.dispatched_ms };
    str_copy(ret->head_sha, sizeof(ret->head_sha), str_of(record.head_sha));
    return OK;
}

static void target_wait(struct fact *fact)
{
    int64_t now = clock_mono_ms();
    if (fact->give_up_ms == 0)
        fact->give_up_ms = now + HOLD_MS;
    fact->state = FACT_WAITING;
    if (now < fact->give_up_ms) {
        fact->look_again_ms = now + LOOK_MS;
        return;
    }
    fact_refuse(fact, "refused", "no dispatch known of this delivery to this repository");
    if (headers_get_i64(&fact->record->headers, "attempt", 1) <= 1) /* once, before the DLQ */
        fact->step = FACT_TO_DELAY;
}

enum err fold_target_fill(struct redis *redis, struct result_record *job, bool *found,
                          struct why *why)
{
    struct target target;
    enum err err = target_find(redis, job, found, &target, why);
    if (err || !*found)
        return err;
    job->pr_number = target.pr;
    job->dispatched_ms = target.dispatched_ms;
    free(job->head_sha);
    job->head_sha = *target.head_sha ? mem_dup(target.head_sha) : NULL;
    return OK;
}

bool fold_pending_resolve(struct fold *f, struct fact *fact)
{
    struct why why;
    bool found = false;
    enum err err = fold_target_fill(f->redis, &fact->callback.job, &found, &why);
    if (err) {
        fold_call_failed(f, fact, err, &why);
        return false;
    }
    if (!found) {
        target_wait(fact);
        return false;
    }
    fact->callback.pending = false;
    return true;
}
