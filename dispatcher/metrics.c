#include "metrics.h"

#include <stdio.h>

#include "../common/github/github.h"
#include "../common/model/ids.h"
#include "../common/model/task.h"
#include "../common/worker/worker.h"

const struct metric_family dispatcher_metrics[] = {
    [M_EVENTS] = { .name = "crcr_events_routed_total",
                   .type = METRIC_COUNTER,
                   .help = "Events read by the router, by what became of them.",
                   .labels = { "event", "result" } },
    [M_TASKS] = { .name = "crcr_tasks_total",
                  .type = METRIC_COUNTER,
                  .help = "Tasks written for the senders.",
                  .labels = { "tier" } },
    [M_OUTCOMES] = { .name = "crcr_dispatch_outcomes_total",
                     .type = METRIC_COUNTER,
                     .help = "Outcomes of tasks, as in the dispatches topic.",
                     .labels = { "tier", "outcome" } },
    [M_LATENCY] = { .name = "crcr_dispatch_latency_seconds",
                    .type = METRIC_HISTOGRAM,
                    .help = "From the webhook's last byte to GitHub's 2xx; not of what was "
                            "redelivered or replayed.",
                    .labels = { "tier" } },
    [M_CALL] = { .name = "crcr_github_call_seconds",
                 .type = METRIC_HISTOGRAM,
                 .help = "One call to GitHub, without its token.",
                 .labels = { "tier" } },
    [M_IN_FLIGHT] = { .name = "crcr_dispatches_in_flight",
                      .type = METRIC_GAUGE,
                      .help = "Calls in flight.",
                      .labels = { "tier" } },
    [M_IN_HAND] = { .name = "crcr_tasks_in_hand",
                    .type = METRIC_GAUGE,
                    .help = "Tasks read and not finished, waiting ones included.",
                    .labels = { "tier" } },
    [M_CLAIMS] = { .name = "crcr_claims_total",
                   .type = METRIC_COUNTER,
                   .help = "Claims by verdict; none: Redis was unavailable, sent without one; "
                           "unpaid: the budget refuses the call.",
                   .labels = { "tier", "verdict" } },
    [M_MAYBE_DUPLICATE] = { .name = "crcr_dispatches_maybe_duplicate_total",
                            .type = METRIC_COUNTER,
                            .help = "Calls that may be the second to arrive, by why: "
                                    "answer_unseen, claim_expired, no_claim.",
                            .labels = { "tier", "reason" } },
    [M_BREAKER_OPEN] = { .name = "crcr_breaker_open",
                         .type = METRIC_GAUGE,
                         .help = "1 while an account whose calls fail again and again is left "
                                 "alone, but for probes.",
                         .labels = { "account" } },
    [M_PARKED] = { .name = "crcr_parked_total",
                   .type = METRIC_COUNTER,
                   .help = "Records put into a delay topic, each of up to 16 tasks.",
                   .labels = { "delay" } },
    [M_RELEASED] = { .name = "crcr_delay_released_total",
                     .type = METRIC_COUNTER,
                     .help = "Records whose delay ended.",
                     .labels = { "delay" } },
    [M_DLQ] = { .name = "crcr_dlq_total",
                .type = METRIC_COUNTER,
                .help = "Records put into the dlq.",
                .labels = { "role", "class" } },
    [M_BUDGET] = { .name = "crcr_github_budget_left",
                   .type = METRIC_GAUGE,
                   .help = "x-ratelimit-remaining of the installation with least; its limit once "
                           "the hour is over.",
                   .labels = { "tier" } },
    [M_NOT_STORED] = { .name = "crcr_records_not_stored_total",
                       .type = METRIC_COUNTER,
                       .help =
                           "Records that the broker did not acknowledge; each is written again.",
                       .labels = { "topic" } },
    [M_LOST] = { .name = "crcr_records_lost_total",
                 .type = METRIC_COUNTER,
                 .help = "Records that Kafka removed before the role had read them.",
                 .labels = { "role", "topic" } },
    [M_ALLOWLIST_FETCHES] = { .name = "crcr_allowlist_fetches_total",
                              .type = METRIC_COUNTER,
                              .help = "Fetches of the allowlist and the providers file.",
                              .labels = { "file", "result" } },
    [M_ALLOWLIST_VALID] = { .name = "crcr_allowlist_valid",
                            .type = METRIC_GAUGE,
                            .help = "1 when the file that was fetched last could be read.",
                            .labels = { "file" } },
    [M_ALLOWLIST_FETCHED] = { .name = "crcr_allowlist_fetched_timestamp_seconds",
                              .type = METRIC_GAUGE,
                              .help =
                                  "When the file was last seen complete, changed or not; 0: never.",
                              .labels = { "file" } },
    [M_ALLOWLIST_HELD] = { .name = "crcr_allowlist_held",
                           .type = METRIC_GAUGE,
                           .help = "1 while a version is held that loses more than half of the "
                                   "repositories.",
                           .labels = { "file" } },
    [M_ALLOWLIST_REPOS] = { .name = "crcr_allowlist_repositories",
                            .type = METRIC_GAUGE,
                            .help = "Repositories in the allowlist in force." },
    [M_BUDGET_LEFT] = { .name = "crcr_budget_left",
                        .type = METRIC_GAUGE,
                        .help = "What is left of our own budget for GitHub, to the account with "
                                "least.",
                        .labels = { "class", "bucket" } },
    [M_BUDGET_WAITS] = { .name = "crcr_budget_waits_total",
                         .type = METRIC_COUNTER,
                         .help = "Calls to GitHub that our own budget held back.",
                         .labels = { "class", "bucket" } },
    [M_REPO_OUTCOMES] = { .name = "crcr_dispatch_repo_outcomes_total",
                          .type = METRIC_COUNTER,
                          .help = "Outcomes by downstream, and why; each attempt has one.",
                          .labels = { "repo", "outcome", "reason" } },
};
const size_t dispatcher_n_metrics = sizeof(dispatcher_metrics) / sizeof(dispatcher_metrics[0]);
const struct budget_families dispatcher_budget_families = { M_BUDGET, M_BUDGET_LEFT,
                                                            M_BUDGET_WAITS };

const struct worker_metrics dispatcher_worker_metrics = {
    .not_stored = M_NOT_STORED, .dlq = M_DLQ, .delayed = M_PARKED, .lost = M_LOST
};

void dispatcher_outcome_reason(const struct outcome *o, char *to)
{
    static const int documented[] = { 401, 403, 404, 410, 422, 429 };
    static const char *const without_status[] = {
        [OUTCOME_DISPATCHED] = "none", [OUTCOME_UNKNOWN] = "no_answer", [OUTCOME_WAITING] = "held",
        [OUTCOME_FAILED] = "not_sent", [OUTCOME_SUPERSEDED] = "none",   [OUTCOME_SKIPPED] = "none",
        [OUTCOME_DUPLICATE] = "none",
    };
    enum { SIZE = 16 };
    int status = o->http_status, hundreds = status / 100;
    for (size_t i = 0; i < sizeof(documented) / sizeof(documented[0]); i++)
        if (status == documented[i]) {
            snprintf(to, SIZE, "http_%d", status);
            return;
        }
    if (status == 0 || hundreds == 2)
        snprintf(to, SIZE, "%s", without_status[status ? OUTCOME_DISPATCHED : o->outcome]);
    else if (hundreds == 4 || hundreds == 5)
        snprintf(to, SIZE, "http_%dxx", hundreds);
    else
        snprintf(to, SIZE, "http_other");
}

void dispatcher_count_outcome(struct metrics *m, const struct outcome *o)
{
    char reason[16];
    struct str kind = str_of(outcome_kind_name(o->outcome));
    dispatcher_outcome_reason(o, reason);
    metrics_add(m, M_OUTCOMES, METRIC_LABELS(str_of(level_name(o->level)), kind), 1);
    metrics_add(m, M_REPO_OUTCOMES, METRIC_LABELS(str_of(o->repo), kind, str_of(reason)), 1);
}
