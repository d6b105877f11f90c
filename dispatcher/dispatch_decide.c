#include "dispatch_decide.h"

#include "../common/worker/retry_ladder.h"
#include "rerun.h"

const char *dispatch_unwanted(const struct task *task, const struct allowlist *list, int64_t now_ms,
                              int64_t max_age_ms)
{
    if (route_is_old(&task->event, now_ms, max_age_ms))
        return ROUTE_TOO_OLD;
    if (!list || rerun_is_suite(task)) /* the upstream itself is in no list */
        return NULL;
    const struct allowlist_entry *entry = allowlist_find(list, task->repo);
    if (!entry)
        return ROUTE_NOT_LISTED;
    if (task->kind == TASK_DISPATCH)
        return entry->pull_request ? NULL : "the repository takes nightly runs only";
    return entry->level >= RERUN_LEVEL ? NULL : ROUTE_NO_RERUNS;
}

/* ---- before the call ---- */

/* A wait with an outcome: in hand when it is short, else parked. */
static void wait_until(struct dispatch_decision *d, int64_t until_ms, int64_t now_ms)
{
    d->next = until_ms - now_ms <= DISPATCH_IN_HAND_MS ? DISPATCH_WAIT : DISPATCH_PARK;
    d->until_ms = until_ms;
}

static int64_t back_off_until(int64_t since_ms, int64_t now_ms, double jitter)
{
    int64_t wait_ms = now_ms - since_ms;
    if (wait_ms < DISPATCH_BACK_OFF_MIN_MS)
        wait_ms = DISPATCH_BACK_OFF_MIN_MS;
    if (wait_ms > DISPATCH_BACK_OFF_MAX_MS)
        wait_ms = DISPATCH_BACK_OFF_MAX_MS;
    return now_ms + wait_ms + (int64_t)(jitter * (double)wait_ms / 2);
}

#define ANY_CLAIM (-1)
#define SOON_MS   1000
enum moment { NOW, SOON, CLAIM_END, BACK_OFF };

/* The first row that holds decides. */
static const struct {
    unsigned fact;
    int claim; /* enum claim_verdict */
    enum dispatch_next next;
    enum outcome_kind outcome;
    enum moment until;   /* of waits */
    enum task_mark mark; /* of calls */
    const char *reason;
} rows[] = {
    { FACT_UNWANTED, ANY_CLAIM, DISPATCH_END, OUTCOME_SKIPPED, .reason = NULL },
    /* In hand it would take the room of others. */
    { FACT_SLOW, ANY_CLAIM, DISPATCH_WAIT, OUTCOME_WAITING, BACK_OFF,
      .reason = "the downstream is slow: all its slots are taken" },
    /* It was sent, is being sent, or has been overtaken. */
    { FACT_CLAIM_ASKED, CLAIM_DONE, DISPATCH_END, OUTCOME_DUPLICATE, .reason = NULL },
    { FACT_CLAIM_ASKED, CLAIM_SUPERSEDED, DISPATCH_END, OUTCOME_SUPERSEDED,
      .reason = "a later event of this pull request was sent already, or waits" },
    { FACT_CLAIM_ASKED, CLAIM_BUSY, DISPATCH_HOLD, OUTCOME_WAITING, CLAIM_END, .reason = NULL },
    /* It must not be called now. */
    { FACT_CLAIM_OLD, ANY_CLAIM, DISPATCH_WAIT, OUTCOME_WAITING, NOW,
      .reason = "this process was paused after it had claimed it" },
    /* It is called. */
    { FACT_CLAIM_ASKED, CLAIM_TAKEN, DISPATCH_CALL, .mark = MARK_NONE },
    { FACT_CLAIM_ASKED, CLAIM_EXPIRED, DISPATCH_CALL, .mark = MARK_CLAIM_EXPIRED },
    { FACT_CLAIM_ASKED, CLAIM_FORGOTTEN, DISPATCH_CALL, .mark = MARK_NO_CLAIM },
    /* Without a claim the partition must be known to be ours. */
    { FACT_PARTITION_UNSURE, ANY_CLAIM, DISPATCH_HOLD, OUTCOME_WAITING, SOON, .reason = NULL },
    { FACT_CLAIM_ASKED, CLAIM_NONE, DISPATCH_CALL, .mark = MARK_NO_CLAIM },
};

struct dispatch_decision dispatch_decide(const struct dispatch_facts *facts)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!(facts->known & rows[i].fact) ||
            (rows[i].claim != ANY_CLAIM && rows[i].claim != (int)facts->claim))
            continue;
        struct dispatch_decision d = { .next = rows[i].next,
                                       .outcome = rows[i].outcome,
                                       .mark = facts->is_expand ? MARK_NONE : rows[i].mark,
                                       .attempt = facts->attempt,
                                       .reason = rows[i].fact == FACT_UNWANTED ? facts->unwanted
                                                                               : rows[i].reason,
                                       .because = rows[i].fact };
        const int64_t until_ms[] = { [NOW] = facts->now_ms,
                                     [SOON] = facts->now_ms + SOON_MS,
                                     [CLAIM_END] = facts->busy_until_ms,
                                     [BACK_OFF] = back_off_until(facts->since_ms, facts->now_ms,
                                                                 facts->jitter) };
        d.until_ms = until_ms[rows[i].until];
        if (d.next == DISPATCH_WAIT)
            wait_until(&d, d.until_ms, facts->now_ms);
        return d;
    }
    return (struct dispatch_decision){ .next = DISPATCH_CLAIM, .attempt = facts->attempt };
}

/* ---- after the answer ----
 *
 *   GitHub took it                    done
 *   GitHub refuses it                 DLQ, refused
 *   the gate holds it                 wait until the moment it names (open breaker: back-off); no
 *                                     attempt is spent
 *   no answer seen, or 5xx            wait; the next attempt is marked answer_unseen
 *   had no effect                     wait; the next attempt is not marked
 *
 *   attempt 1 ─10 s─▶ 2 ─1 m─▶ 3 ─10 m─▶ 4 ─1 h─▶ 5 ──▶ DLQ, exhausted */
struct dispatch_decision dispatch_decide_answer(const struct github_answer *answer, int attempt,
                                                int64_t now_ms, double jitter)
{
    struct dispatch_decision d = { .attempt = attempt,
                                   .reason = answer->err ? answer->reason : NULL };
    if (!answer->err) {
        d.next = DISPATCH_END;
        d.outcome = OUTCOME_DISPATCHED;
        return d;
    }
    if (answer->err == ERR_REFUSE) {
        d.next = DISPATCH_DEAD;
        d.outcome = OUTCOME_FAILED;
        d.dlq_class = "refused";
        return d;
    }
    d.outcome = answer->err == ERR_UNKNOWN ? OUTCOME_UNKNOWN : OUTCOME_WAITING;
    if (answer->because == GATE_BREAKER) {
        d.because = FACT_BREAKER_OPEN;
        wait_until(&d, back_off_until(answer->since_ms, now_ms, jitter), now_ms);
        return d;
    }
    if (answer->because) {
        /* GitHub names one moment to all, so spread them; those of our budget differ already. */
        int64_t spread_ms = answer->sent_ms ? (int64_t)(jitter * 1000) : 0;
        d.because = FACT_LIMITED;
        wait_until(&d, answer->wait_until_ms + spread_ms, now_ms);
        return d;
    }
    if (answer->err == ERR_UNKNOWN)
        d.mark = MARK_ANSWER_UNSEEN;
    d.because = FACT_FAILED;
    d.attempt = attempt + 1;
    int64_t step_ms = retry_wait_ms(attempt);
    if (!step_ms) {
        d.next = DISPATCH_DEAD;
        d.outcome = OUTCOME_FAILED;
        d.dlq_class = "exhausted";
        return d;
    }
    int64_t until_ms = now_ms + (int64_t)((double)step_ms * (0.8 + 0.2 * jitter));
    wait_until(&d, until_ms < answer->wait_until_ms ? answer->wait_until_ms : until_ms, now_ms);
    return d;
}
