/* Where an upstream event goes (behaviour.md, routing and sending). PURE. */
#ifndef CRCR_DISPATCHER_ROUTE_H
#define CRCR_DISPATCHER_ROUTE_H

#include "../common/model/allowlist.h"
#include "../common/model/task.h"

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
    struct str run_id;   /* re-runs; borrowed from facts */
    const char *skipped; /* NULL: it gets a task */
};

struct routes {
    struct route *at;
    size_t n;
    const char *nothing; /* n is 0: why no downstream is concerned at all */
};

/* ret is the caller's to clear. */
void route(const struct route_input *in, struct routes *ret);
void routes_clear(struct routes *r);

/* For the sender, perhaps days later: why the task is not wanted any more, NULL when it is. */
const char *route_unwanted(const struct task *task, const struct allowlist *list, int64_t now_ms,
                           int64_t max_age_ms);

#endif
