#include "retry.h"

/* After the failure of attempt i + 1. */
static const int64_t waits_ms[] = { 10000, 60000, 600000, 3600000 };
#define ATTEMPTS ((int)(sizeof(waits_ms) / sizeof(waits_ms[0])))

/* The delay topics by the longest wait that belongs there: a record waits behind others of its kind
 * only. */
static const struct {
    int64_t max_ms;
    enum topic topic;
} delays[] = {
    { 10000, TOPIC_DELAY_10S },
    { 60000, TOPIC_DELAY_1M },
    { 600000, TOPIC_DELAY_10M },
    { INT64_MAX, TOPIC_DELAY_1H },
};

static void wait_until(struct retry *r, int64_t at_ms, int64_t now_ms)
{
    int64_t wait_ms = at_ms - now_ms;
    size_t i = 0;
    r->at_ms = at_ms;
    r->next = wait_ms <= RETRY_HOLD_MAX_MS ? RETRY_HOLD : RETRY_PARK;
    while (wait_ms > delays[i].max_ms)
        i++;
    r->delay = delays[i].topic;
}

static void dead(struct retry *r, const char *cls)
{
    r->next = RETRY_DEAD;
    r->cls = cls;
    r->outcome = OUTCOME_FAILED;
}

struct retry retry_decide(const struct github_answer *answer, int attempt, int64_t now_ms,
                          double jitter)
{
    struct retry r = { .next = RETRY_DONE, .attempt = attempt, .outcome = OUTCOME_DISPATCHED };
    if (answer->err == OK)
        return r;
    if (answer->err == ERR_REFUSE) {
        dead(&r, "refused");
        return r;
    }
    r.outcome = OUTCOME_WAITING;
    if (answer->limited) {
        /* A moment that GitHub names, it names to all; our own are one for each, in order. */
        int64_t spread_ms = answer->sent_ms ? (int64_t)(jitter * 1000) : 0;
        wait_until(&r, answer->wait_until_ms + spread_ms, now_ms);
        return r;
    }
    if (answer->err == ERR_UNKNOWN) {
        r.outcome = OUTCOME_UNKNOWN;
        r.maybe_duplicate = true;
    }
    r.attempt = attempt + 1;
    if (attempt < 1 || attempt > ATTEMPTS) {
        dead(&r, "exhausted");
        return r;
    }
    int64_t wait_ms = (int64_t)((double)waits_ms[attempt - 1] * (0.8 + 0.2 * jitter));
    int64_t at_ms = now_ms + wait_ms;
    wait_until(&r, at_ms < answer->wait_until_ms ? answer->wait_until_ms : at_ms, now_ms);
    return r;
}
