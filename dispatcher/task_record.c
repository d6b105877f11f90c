#include "task_record.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/model/event.h"
#include "../common/worker/retry_ladder.h"

/* ---- in hand ---- */

/* Only a payload of the upstream is sent and gets a token: others may have written to the topic. */
static enum err check_upstream(const struct task *task, struct str payload, struct str upstream,
                               struct why *why)
{
    struct event_facts facts;
    if (task->kind != TASK_DISPATCH)
        return OK;
    enum err err = event_read(task->event.kind, payload, &facts, why);
    if (!err && !str_eq_nocase(str_of(facts.repo), upstream))
        err = why_set(why, ERR_REFUSE, "the payload is of '%s', not of the upstream %.*s",
                      facts.repo, STR_ARG(upstream));
    return err;
}

struct task_record *task_record_take(struct sender *s, struct work *work)
{
    struct why why;
    struct task task;
    struct str repos;
    enum err err = task_from_record(&task, &repos, work->record->key, &work->record->headers, &why);
    if (!err && task.level != s->level)
        err = why_set(&why, ERR_REFUSE, "a task of L%d in the topic of L%d", task.level, s->level);
    if (!err)
        err = check_upstream(&task, work->record->value, s->d->upstream_repo, &why);
    if (err) {
        work_dead(work, "poison", why.text);
        work_done(work);
        return NULL;
    }
    struct task_record *r = mem_alloc(1, sizeof(*r));
    r->s = s;
    r->attempt = task.attempt;
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
    return r;
}

/* ---- parked or put back ---- */

/* Do not publish here: the caller may be iterating. */
static void list_if_all_leave(struct task_record *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->tasks[i] && r->tasks[i]->state != TASK_LEAVING)
            return;
    if (!r->listed)
        DL_APPEND(r->s->leaving, r);
    r->listed = true;
}

void task_record_leave(struct task_in_hand *t, enum task_exit exit)
{
    t->state = TASK_LEAVING;
    t->exit = exit;
    list_if_all_leave(t->record);
}

void task_record_end(struct task_in_hand *t, bool done)
{
    struct task_record *r = t->record;
    size_t left = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->tasks[i] == t)
            r->tasks[i] = NULL;
        left += !!r->tasks[i];
    }
    free(t);
    r->done |= done;
    if (left) {
        list_if_all_leave(r);
        return;
    }
    if (r->listed)
        DL_DELETE(r->s->leaving, r);
    free(r);
}

/* True while no task of it has begun and no attempt is spent: the record in the topic says all. */
static bool is_untouched(const struct task_record *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct task_in_hand *t = r->tasks[i];
        if (t && (t->state != TASK_IN_LANE || t->task.attempt != r->attempt))
            return false;
    }
    return !r->done;
}

void task_record_give_back(struct task_in_hand *t)
{
    struct work *work = t->work;
    if (work_is_lost(work) || is_untouched(t->record)) {
        task_record_end(t, false);
        work_drop(work);
        return;
    }
    bool parks = t->decision.until_ms > clock_mono_ms() && work_can_park(work);
    task_record_leave(t, parks ? EXIT_PARK : EXIT_BACK);
}

/* The headers of a record for these repos, with the attempt and the mark of t. */
static void headers_of(const struct task_in_hand *t, struct str repos, struct headers *to)
{
    headers_copy(to, &t->work->record->headers);
    headers_leave_room(to, 6);        /* these, and what parking adds */
    if (headers_get(to, "repos").ptr) /* one of the old form is of one downstream */
        headers_set(to, "repos", repos);
    headers_set_i64(to, "attempt", t->task.attempt);
    if (t->task.maybe_duplicate) /* also for whoever replays it from the DLQ */
        headers_set(to, "maybe_duplicate", str_of(task_mark_name(t->task.maybe_duplicate)));
}

void task_record_dead(struct task_in_hand *t, const char *class)
{
    struct headers headers;
    headers_of(t, t->task.repo, &headers);
    work_dead_as(t->work, &headers, class, t->outcome.error);
}

static enum topic delay_of(const struct task_in_hand *t, int64_t now_ms)
{
    return delay_topic_of(topic_of_tier(t->s->level), t->decision.until_ms - now_ms);
}

/* Groups only tasks of the same delay topic: none waits longer than its topic's wait. */
static bool leave_together(const struct task_in_hand *a, const struct task_in_hand *b,
                           int64_t now_ms)
{
    if (a->exit != b->exit || a->task.attempt != b->task.attempt ||
        a->task.maybe_duplicate != b->task.maybe_duplicate)
        return false;
    return a->exit == EXIT_BACK || (a->decision.because == b->decision.because &&
                                    delay_of(a, now_ms) == delay_of(b, now_ms));
}

/* Writes tasks[0] and all that may share its record, at the latest of their moments. */
static void put_group(struct task_in_hand *const tasks[], size_t n, bool put[])
{
    char text[TASK_REPOS_SIZE];
    struct task_in_hand *t = tasks[0];
    const struct record *record = t->work->record;
    int64_t now_ms = clock_mono_ms(), until_ms = 0;
    struct headers headers;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const struct task_in_hand *other = tasks[i];
        if (put[i] || !leave_together(t, other, now_ms))
            continue;
        put[i] = true;
        if (len)
            text[len++] = ',';
        memcpy(text + len, other->task.repo.ptr, other->task.repo.len);
        len += other->task.repo.len;
        if (other->decision.until_ms > until_ms)
            until_ms = other->decision.until_ms;
    }
    headers_of(t, (struct str){ text, len }, &headers);
    if (t->exit == EXIT_BACK) {
        const struct post post = {
            .topic = topic_of_tier(t->s->level),
            .key = record->key,
            .value = record->value,
            .lasting = true,
            .headers = &headers,
        };
        work_put(t->work, &post);
        log_info("put_back", LOG_STR("delivery", t->task.event.delivery),
                 LOG_STR("repos", task_repos(&headers)), LOG_STR("tier", t->s->tier),
                 LOG_INT("partition", record->at.partition), LOG_INT("offset", record->at.offset));
        return;
    }
    int64_t wait_ms = until_ms > now_ms ? until_ms - now_ms : 0;
    const struct park park = {
        .wait_ms = wait_ms,
        .attempt = t->task.attempt,
        .error = t->outcome.error,
        .label = topic_base_name(delay_topic_of(topic_of_tier(t->s->level), wait_ms)),
        .headers = &headers,
    };
    work_park(t->work, &park);
}

void task_records_finish(struct sender *s)
{
    while (s->leaving) {
        struct task_record *r = s->leaving;
        struct task_in_hand *tasks[TASK_REPOS_MAX] = { NULL };
        bool put[TASK_REPOS_MAX] = { false };
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++)
            if (r->tasks[i])
                tasks[n++] = r->tasks[i];
        bool lost = work_is_lost(tasks[0]->work); /* all of them: the next owner reads them */
        for (size_t i = 0; i < n && !lost; i++)
            if (!put[i])
                put_group(tasks + i, n - i, put + i);
        for (size_t i = 0; i < n; i++) { /* the last one frees r */
            (lost ? work_drop : work_done)(tasks[i]->work);
            task_record_end(tasks[i], true);
        }
    }
}
