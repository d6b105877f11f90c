#include "control.h"

#include <jansson.h>

#include "callbacks.h"
#include "checks.h"
#include "comments.h"
#include "downstream.h"
#include "hook_deliveries.h"
#include "record.h"
#include "rows.h"
#include "runs.h"
#include "script.h"
#include "sim.h"

void control_requests(struct sim *sim, const struct call *call, struct reply *reply)
{
    reply_json(reply, 200, record_since(sim->record, call_query(call, "since", 0)));
}

/* What /_sim/state shows. */
static json_t *state_of(struct sim *sim)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "check_runs",
                     checks_describe(sim->checks), "dispatches", rows_describe(sim->dispatches),
                     "runs", runs_describe(sim->runs), "callbacks", rows_describe(sim->callbacks),
                     "hud", rows_describe(sim->hud), "comments", comments_describe(sim->comments),
                     "deliveries", deliveries_describe(sim->deliveries), "downstreams",
                     downstreams_describe(sim->downstreams), "rules", script_describe(sim->script));
}

void control_state(struct sim *sim, const struct call *call, struct reply *reply)
{
    (void)call;
    reply_json(reply, 200, state_of(sim));
}

void control_script(struct sim *sim, const struct call *call, struct reply *reply)
{
    const json_t *rules = json_object_get(call->body, "rules");
    struct why why;

    if (json_is_true(json_object_get(call->body, "clear")))
        script_clear(sim->script);
    else if (script_add(sim->script, rules ? rules : call->body, &why)) {
        reply_error(reply, 422, "%s", why.text);
        return;
    }
    reply_json(reply, 200, script_describe(sim->script));
}

void control_downstreams(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct why why;

    if (downstreams_add(sim->downstreams, call->body, &why))
        reply_error(reply, 422, "%s", why.text);
    else
        reply_json(reply, 200, downstreams_describe(sim->downstreams));
}

void control_reset(struct sim *sim, const struct call *call, struct reply *reply)
{
    (void)call;
    sim_reset(sim);
    reply_json(
        reply, 200,
        json_pack("{s:I}", "callbacks_under_way", (json_int_t)sendings_under_way(sim->sendings)));
}
