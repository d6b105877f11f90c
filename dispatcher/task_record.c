#include "task_record.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/worker/park.h"

/* ---- in hand ---- */

static enum err read_tasks(const struct sender *s, const struct work *work, struct task *task,
                           struct str *repos, struct why *why)
{
    const struct record *record = work->record;
    enum err err = task_from_record(task, repos, record->key, &record->headers, why);
    if (!err && task->level != s->level)
        err = why_set(why, ERR_REFUSE, "a task of L%d in the topic of L%d", task->level, s->level);
    return err;
}

struct task_record *task_record_take(struct sender *s, struct work *work)
{
    struct why why;
    struct task task;
    struct str repos;
    if (read_tasks(s, work, &task, &repos, &why)) {
        work_dead(work, "poison", why.text);
        work_done(work);
        return NULL;
    }
    struct task_record *r = mem_alloc(1, sizeof(*r));
    r->s = s;
    while (str_split(&repos, ',', &task.repo)) {
        struct task_in_hand *t = mem_alloc(1, sizeof(*t));
        t->s = s;
        t->record = r;
        t->work = r->n ? work_share(work) : work;
        t->work->user = t;
        t->task = task;
        t->item.seq = task.seq;
        r->tasks[r->n++] = t;
    }
    r->here = r->left = r->n;
    return r;
}

bool task_record_is_untouched(const struct task_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->tasks[i] && r->tasks[i]->state != TASK_IN_LANE)
            return false;
    return !r->done;
}

/* ---- what leaves ---- */

static void settle(struct task_record *r)
{
    bool settled = r->here == 0 && r->left > 0;
    if (settled && !r->listed)
        DL_APPEND(r->s->settled, r);
    else if (!settled && r->listed)
        DL_DELETE(r->s->settled, r);
    r->listed = settled;
}

void task_record_leave(struct task_in_hand *t, enum task_exit exit)
{
    t->state = TASK_LEAVING;
    t->exit = exit;
    t->record->here--;
    settle(t->record);
}

void task_record_end(struct task_in_hand *t, bool done)
{
    struct task_record *r = t->record;
    size_t i = 0;
    while (r->tasks[i] != t)
        i++;
    r->tasks[i] = NULL;
    r->done |= done;
    r->here -= t->state != TASK_LEAVING;
    r->left--;
    settle(r);
    if (r->left == 0)
        free(r);
    free(t);
}

void task_record_headers(const struct task_in_hand *t, struct str repos, struct headers *to)
{
    headers_copy(to, &t->work->record->headers);
    headers_leave_room(to, 6);        /* these, and what parking adds */
    if (headers_get(to, "repos").ptr) /* one of the old form is of one downstream */
        headers_set(to, "repos", repos);
    headers_set_i64(to, "attempt", t->task.attempt);
    if (t->task.maybe_duplicate) /* also for whoever replays it from the DLQ */
        headers_set(to, "maybe_duplicate", str_of(task_mark_name(t->task.maybe_duplicate)));
}

static enum topic delay_of(const struct task_in_hand *t, int64_t now_ms)
{
    return park_topic(t->decision.until_ms - now_ms);
}

/* Nobody waits longer for another than its delay topic is long. */
static bool leave_together(const struct task_in_hand *a, const struct task_in_hand *b,
                           int64_t now_ms)
{
    if (a->exit != b->exit || a->task.attempt != b->task.attempt ||
        a->task.maybe_duplicate != b->task.maybe_duplicate)
        return false;
    return a->exit == EXIT_BACK || (a->decision.because == b->decision.because &&
                                    delay_of(a, now_ms) == delay_of(b, now_ms));
}

static void put_back(struct task_in_hand *t, const struct headers *headers)
{
    const struct record *record = t->work->record;
    const struct post post = {
        .topic = topic_of_tier(t->s->level),
        .key = record->key,
        .value = record->value,
        .lasting = true,
        .headers = headers,
    };
    work_put(t->work, &post);
    log_info("put_back", LOG_STR("delivery", t->task.event.delivery),
             LOG_STR("repos", task_repos(headers)), LOG_STR("tier", t->s->tier),
             LOG_INT("partition", record->at.partition), LOG_INT("offset", record->at.offset));
}

/* t, and those after it that leave with it, at the latest of their moments. */
static void put_group(struct task_record *r, size_t first, bool put[TASK_REPOS_MAX])
{
    char text[TASK_REPOS_SIZE];
    struct task_in_hand *t = r->tasks[first];
    int64_t now_ms = clock_mono_ms(), until_ms = 0;
    size_t len = 0;
    for (size_t i = first; i < r->n; i++) {
        const struct task_in_hand *other = r->tasks[i];
        if (!other || put[i] || !leave_together(t, other, now_ms))
            continue;
        put[i] = true;
        if (len)
            text[len++] = ',';
        memcpy(text + len, other->task.repo.ptr, other->task.repo.len);
        len += other->task.repo.len;
        if (other->decision.until_ms > until_ms)
            until_ms = other->decision.until_ms;
    }
    int64_t wait_ms = until_ms - now_ms;
    struct headers headers;
    task_record_headers(t, (struct str){ text, len }, &headers);
    if (t->exit == EXIT_BACK) {
        put_back(t, &headers);
        return;
    }
    const struct park park = {
        .wait_ms = wait_ms > 0 ? wait_ms : 0,
        .attempt = t->task.attempt,
        .error = t->outcome.error,
        .label = topic_base_name(park_topic(wait_ms)),
        .headers = &headers,
    };
    work_park(t->work, &park);
}

void task_records_finish(struct sender *s)
{
    while (s->settled) {
        struct task_record *r = s->settled;
        bool put[TASK_REPOS_MAX] = { false };
        for (size_t i = 0; i < r->n; i++)
            if (r->tasks[i] && !put[i] && !work_is_lost(r->tasks[i]->work))
                put_group(r, i, put);
        for (size_t i = 0, left = r->left; left > 0; i++) {
            struct task_in_hand *t = r->tasks[i];
            if (!t)
                continue;
            left--;
            (work_is_lost(t->work) ? work_drop : work_done)(t->work);
            task_record_end(t, true);
        }
    }
}
