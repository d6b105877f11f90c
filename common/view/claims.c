#include "claims.h"

#include <stdio.h>
#include <string.h>

#include "keys.h"

#define CLAIM_TTL_S    604800 /* 7 d, as long as the tasks themselves are kept */
#define CALL_TEXT_SIZE 64
#define TEXTS_MAX      2048

extern const char view_claim_lua[], view_claim_finish_lua[], view_claim_release_lua[],
    view_claim_restore_lua[];

/* A script remembers its SHA; one set a thread, because that memory is not locked. */
static _Thread_local struct redis_script claim_script = { .source = view_claim_lua };
static _Thread_local struct redis_script finish_script = { .source = view_claim_finish_lua };
static _Thread_local struct redis_script release_script = { .source = view_claim_release_lua };
static _Thread_local struct redis_script restore_script = { .source = view_claim_restore_lua };

static const char *const verdicts[] = {
    [CLAIM_TAKEN] = "taken",   [CLAIM_FORGOTTEN] = "forgotten", [CLAIM_EXPIRED] = "expired",
    [CLAIM_BUSY] = "busy",     [CLAIM_DONE] = "done",           [CLAIM_SUPERSEDED] = "superseded",
    [CLAIM_UNPAID] = "unpaid", [CLAIM_NONE] = "none",
};

const char *claim_verdict_name(enum claim_verdict verdict)
{
    return verdicts[verdict];
}

static struct str claim_key(struct key *to, const struct task *task)
{
    const struct event *event = &task->event;
    return key_claim(to, event->delivery, task->repo, task_kind_name(task->kind), task->run_id,
                     event->again);
}

/* What each script of a claim reads first, as one argument: texts, each with a NUL behind it. To
 * take one argument more costs Redis as much as to take ten texts apart. */
struct record {
    int64_t pr, level, dispatched_ms, ttl_s;
    struct str head_sha, seq, owner;
};

static void put(struct buf *to, struct str text)
{
    buf_put(to, text);
    buf_putc(to, '\0');
}

static void put_record(struct buf *to, const struct record *record)
{
    put(to, STR_NUMBER(record->pr));
    put(to, record->head_sha);
    put(to, STR_NUMBER(record->level));
    put(to, STR_NUMBER(record->dispatched_ms));
    put(to, record->seq);
    put(to, STR_NUMBER(record->ttl_s));
    put(to, record->owner);
}

static void put_task(struct buf *to, const struct task *task, const char *owner,
                     int64_t dispatched_ms)
{
    char seq[TASK_SEQ_TEXT_SIZE] = "";
    if (task_can_be_superseded(task))
        task_seq_text(&task->seq, seq);
    const struct record record = { .pr = task->event.pr,
                                   .head_sha = task->event.head_sha,
                                   .level = task->level,
                                   .dispatched_ms = dispatched_ms,
                                   .seq = str_of(seq),
                                   .ttl_s = CLAIM_TTL_S,
                                   .owner = str_of(owner) };
    put_record(to, &record);
}

enum err claim_queue(struct redis *r, const struct task *task, const char *owner,
                     int64_t dispatched_ms, bool overtaken, const struct budget_bill *bill,
                     struct why *why)
{
    struct buf CLEANUP(buf_clear) texts = BUF_INIT(TEXTS_MAX);
    struct budget_args pays;
    struct key lane;
    struct str argv[3 + BUDGET_KEYS + 2];
    size_t n = 0, keys;
    argv[n++] = claim_key(NEW_KEY, task);
    argv[n++] = STR_LIT(KEY_EPOCH);
    if (bill)
        budget_args(bill, &pays);
    for (size_t i = 0; bill && i < pays.n_keys; i++)
        argv[n++] = pays.key[i];
    if (task_can_be_superseded(task))
        argv[n++] = key_seq(&lane, task->repo, task->event_key);
    keys = n;
    put_task(&texts, task, owner, dispatched_ms);
    /* Two that expand at once do no harm: what they find is claimed one by one. */
    put(&texts, STR_NUMBER(task->kind == TASK_EXPAND ? 0 : CLAIM_SENDING_MS));
    put(&texts, STR_NUMBER(task->event.received_ms));
    put(&texts, overtaken ? STR_LIT("1") : STR_LIT("0"));
    argv[n++] = buf_str(&texts);
    if (bill)
        argv[n++] = pays.packed;
    return redis_queue_script(r, &claim_script, keys, n, argv, why);
}

/* "204 1 answer_unseen": HTTP status, attempt, mark. */
static struct str call_text(char to[CALL_TEXT_SIZE], const struct outcome *o)
{
    int n = snprintf(to, CALL_TEXT_SIZE, "%d %d %s", o->http_status, o->attempt,
                     task_mark_name(o->maybe_duplicate));
    return (struct str){ to, (size_t)n };
}

static struct claim_call call_read(struct str at, struct str text)
{
    struct claim_call call = { 0 };
    struct outcome o;
    struct str status, attempt;
    int64_t number;
    if (str_to_i64(at, &number))
        call.at_ms = number;
    if (!outcome_from_json(text, &o, NULL)) { /* a dispatcher of before wrote it */
        call.http_status = o.http_status;
        call.attempt = o.attempt;
        call.maybe_duplicate = o.maybe_duplicate;
    } else if (str_split(&text, ' ', &status) && str_split(&text, ' ', &attempt)) {
        call.http_status = str_to_i64(status, &number) ? (int)number : 0;
        call.attempt = str_to_i64(attempt, &number) ? (int)number : 0;
        call.maybe_duplicate = task_mark_parse(text);
    }
    return call;
}

enum err claim_collect(struct redis *r, struct claim_answer *ret, struct why *why)
{
    const struct redis_value *v;
    enum err err = redis_collect(r, &v, why);
    if (err)
        return err;
    for (enum claim_verdict i = CLAIM_TAKEN; v->n && i < CLAIM_NONE; i++) {
        if (!str_is(v->items[0].text, verdicts[i]))
            continue;
        struct claim_answer answer = { .verdict = i };
        if (i == CLAIM_DONE && v->n == 3)
            answer.call = call_read(v->items[1].text, v->items[2].text);
        else if (i == CLAIM_BUSY && v->n == 2)
            answer.wait_ms = v->items[1].integer;
        else
            err = v->n > 1 ? budget_answer_read(v->items + 1, v->n - 1, &answer.budget, why) : OK;
        if (!err)
            *ret = answer;
        return err;
    }
    return why_set(why, ERR_REFUSE, "the claim script gave an unknown verdict");
}

static void put_end(struct buf *to, const char *state, const struct outcome *outcome)
{
    char call[CALL_TEXT_SIZE];
    put(to, str_of(state));
    put(to, call_text(call, outcome));
}

enum err claim_finish_queue(struct redis *r, const struct task *task, const char *owner,
                            const struct outcome *outcome, struct why *why)
{
    struct buf CLEANUP(buf_clear) texts = BUF_INIT(TEXTS_MAX);
    struct key lane;
    struct str argv[3] = { claim_key(NEW_KEY, task) };
    bool done = outcome->outcome == OUTCOME_DISPATCHED || outcome->outcome == OUTCOME_SKIPPED;
    size_t keys = 1;
    if (task_can_be_superseded(task))
        argv[keys++] = key_seq(&lane, task->repo, task->event_key);
    put_task(&texts, task, owner, outcome->at_ms);
    put_end(&texts, done ? "done" : "unknown", outcome);
    argv[keys] = buf_str(&texts);
    return redis_queue_script(r, &finish_script, keys, keys + 1, argv, why);
}

enum err claim_release_queue(struct redis *r, const struct task *task, const char *owner,
                             struct why *why)
{
    const struct str argv[] = { claim_key(NEW_KEY, task), str_of(owner) };
    return redis_queue_script(r, &release_script, 1, 2, argv, why);
}

enum err claim_end_collect(struct redis *r, struct why *why)
{
    const struct redis_value *v;
    enum err err = redis_collect(r, &v, why);
    if (!err && v->integer == 0)
        return why_set(why, ERR_REFUSE, "another owner has taken the claim since");
    return err;
}

/* What each outcome says: "" nothing of the claim; moved: its seq was the lane's last. */
static const struct {
    const char *state;
    bool moved;
} says[] = {
    [OUTCOME_DISPATCHED] = { "done", true }, [OUTCOME_UNKNOWN] = { "unknown", true },
    [OUTCOME_WAITING] = { "", false },       [OUTCOME_FAILED] = { "", true },
    [OUTCOME_SUPERSEDED] = { "", false },    [OUTCOME_SKIPPED] = { "", false },
    [OUTCOME_DUPLICATE] = { "done", true },
};

enum err claim_restore_queue(struct redis *r, const struct outcome *outcome, int64_t age_ms,
                             bool *queued, struct why *why)
{
    struct buf CLEANUP(buf_clear) texts = BUF_INIT(TEXTS_MAX);
    struct str repo = str_of(outcome->repo);
    int64_t ttl_s = CLAIM_TTL_S - (age_ms > 0 ? age_ms / 1000 : 0);
    const char *state = says[outcome->outcome].state;
    if (!*state && outcome->maybe_duplicate) /* an earlier call was unknown */
        state = outcome->outcome == OUTCOME_FAILED || outcome->outcome == OUTCOME_WAITING
                    ? "unknown"
                    : "";
    bool moved = says[outcome->outcome].moved && *outcome->seq && *outcome->event_key;
    bool named = *outcome->run_id || str_is(str_of(outcome->kind), task_kind_name(TASK_DISPATCH));
    *queued = named && ttl_s > 0 && (*state || moved);
    if (!*queued)
        return OK;
    const struct record record = { .pr = outcome->pr_number,
                                   .head_sha = str_of(outcome->head_sha),
                                   .level = outcome->level,
                                   .dispatched_ms = outcome->at_ms,
                                   .seq = str_of(outcome->seq),
                                   .ttl_s = ttl_s,
                                   .owner = STR_LIT("rebuild") };
    put_record(&texts, &record);
    put_end(&texts, state, outcome);
    struct str argv[3] = { key_claim(NEW_KEY, str_of(outcome->delivery_id), repo, outcome->kind,
                                     str_of(outcome->run_id), str_of(outcome->again)) };
    struct key lane;
    size_t keys = 1;
    if (moved)
        argv[keys++] = key_seq(&lane, repo, str_of(outcome->event_key));
    argv[keys] = buf_str(&texts);
    return redis_queue_script(r, &restore_script, keys, keys + 1, argv, why);
}

static bool field(const struct redis_value *v, size_t i, int64_t *ret)
{
    return v->items[i].type == REDIS_STR && str_to_i64(v->items[i].text, ret);
}

enum err dispatch_record_get(struct redis *r, struct str delivery, struct str repo, bool *found,
                             struct dispatch_record *ret, struct why *why)
{
    const struct redis_value *v;
    struct dispatch_record record = { 0 };
    enum err err =
        redis_call(r, &v,
                   REDIS_ARGS(STR_LIT("HMGET"),
                              key_claim(NEW_KEY, delivery, repo, task_kind_name(TASK_DISPATCH),
                                        STR_NONE, STR_NONE),
                              STR_LIT("dispatched_ms"), STR_LIT("pr"), STR_LIT("head_sha")),
                   why);
    if (err)
        return err;
    *found = v->type == REDIS_ARRAY && v->n == 3 && field(v, 0, &record.dispatched_ms) &&
             field(v, 1, &record.pr) &&
             str_copy(record.head_sha, sizeof(record.head_sha), v->items[2].text);
    if (*found)
        *ret = record;
    return OK;
}
