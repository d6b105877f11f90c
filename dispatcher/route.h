/* Where an upstream event goes. PURE. */
#ifndef CRCR_DISPATCHER_ROUTE_H
#define CRCR_DISPATCHER_ROUTE_H

#include "../common/model/allowlist.h"
#include "../common/model/task.h"

/* Why a task is not wanted, also when it is looked at again before its call (dispatch_decide.c). */
#define ROUTE_TOO_OLD    "the event is older than CRCR_MAX_EVENT_AGE"
#define ROUTE_NOT_LISTED "the repository is not in the allowlist"
#define ROUTE_NO_RERUNS  "re-runs are for levels 3 and 4"
#define ROUTE_OTHER_CI   "the check run names no GitHub Actions run"

struct route_input {
    const struct event *event;
    const struct event_facts *facts;
    const struct allowlist *list;
    int64_t now_ms;
    int64_t max_age_ms;
    int64_t app_id; /* ours; 0 when it is not known as a number */
};

/* One downstream and what it gets, or why it gets nothing. */
struct route {
    struct str repo; /* as the allowlist writes it; borrowed from list */
    int level;
    enum task_kind kind;
    struct str run_id; /* as a task's; borrowed from the check run's external_id, or from routes */
    const char *skipped; /* NULL: it gets a task */
};

struct routes {
    struct route *at;
    size_t n;
    const char *nothing;         /* n is 0: why no downstream is concerned at all */
    char suite[STR_NUMBER_SIZE]; /* check suites: the run_id */
};

/* ret is the caller's to clear. */
void route(const struct route_input *in, struct routes *ret);
void routes_clear(struct routes *r);
void routes_add(struct routes *r, struct route route);

/* True when the payload of the event goes along with the task. */
bool route_takes_payload(enum task_kind kind);
/* The task that a route becomes; of: what all tasks of its event have in common. */
struct task route_task(const struct route *to, const struct task *of);

/* Never for a replay --again: the operator knows its age. now_ms is the wall clock. */
bool route_is_old(const struct event *event, int64_t now_ms, int64_t max_age_ms);

#endif
