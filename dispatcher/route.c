#include "route.h"

#include <stdlib.h>

#include "../common/base/mem.h"
#include "../common/model/ids.h"
#include "rerun.h"

void routes_add(struct routes *r, struct route route)
{
    if ((r->n & (r->n - 1)) == 0) /* full at each power of two */
        r->at = mem_resize(r->at, r->n ? 2 * r->n : 1, sizeof(*r->at));
    r->at[r->n++] = route;
}

/* pull_request and push: every downstream but those that only report nightly runs. */
static void fan_out(const struct route_input *in, const char *skipped, struct routes *ret)
{
    for (size_t i = 0; i < allowlist_size(in->list); i++) {
        const struct allowlist_entry *entry = allowlist_at(in->list, i);
        if (entry->pull_request)
            routes_add(ret, (struct route){ .repo = entry->repo,
                                            .level = entry->level,
                                            .kind = TASK_DISPATCH,
                                            .skipped = skipped });
    }
    if (!ret->n)
        ret->nothing = "the allowlist has no downstream that takes pull requests";
}

bool route_is_old(const struct event *event, int64_t now_ms, int64_t max_age_ms)
{
    return !event->again.len && now_ms - event->received_ms > max_age_ms;
}

bool route_takes_payload(enum task_kind kind)
{
    return kind == TASK_DISPATCH || kind == TASK_EXPAND;
}

struct task route_task(const struct route *to, const struct task *of)
{
    return (struct task){
        .event = of->event,
        .repo = to->repo,
        .level = to->level,
        .kind = to->kind,
        .run_id = to->run_id,
        .attempt = 1,
        .seq = of->seq,
        .payload_trimmed = route_takes_payload(to->kind) ? of->payload_trimmed : STR_NONE,
        .event_key = of->event_key,
    };
}

void route(const struct route_input *in, struct routes *ret)
{
    const struct event *event = in->event;
    const struct event_facts *facts = in->facts;
    const char *old = route_is_old(event, in->now_ms, in->max_age_ms) ? ROUTE_TOO_OLD : NULL;
    const struct check_asked check = {
        .app_id = facts->app_id,
        .name = str_of(facts->check_name),
        .external_id = str_of(facts->external_id),
    };
    struct route to;
    *ret = (struct routes){ 0 };
    switch (event->kind) {
    case EVENT_PULL_REQUEST:
        if (str_is(event->action, "labeled") || str_is(event->action, "unlabeled"))
            ret->nothing = "labels are facts for the reporter";
        else
            fan_out(in, old, ret);
        break;
    case EVENT_PUSH:
        if (facts->deleted)
            ret->nothing = "the ref was deleted";
        else
            fan_out(in, old, ret);
        break;
    case EVENT_CHECK_RUN:
        ret->nothing = rerun_check(in, &check, &to);
        if (!ret->nothing)
            routes_add(ret, to);
        break;
    case EVENT_CHECK_SUITE:
        rerun_suite(in, ret);
        break;
    default:
        ret->nothing = "events of this kind are not dispatched";
    }
}

void routes_clear(struct routes *r)
{
    free(r->at);
    *r = (struct routes){ 0 };
}
