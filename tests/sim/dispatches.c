#include "dispatches.h"

#include <jansson.h>

#include "history.h"
#include "reaction.h"
#include "rows.h"
#include "sim.h"

#define EVENT_TYPE_MAX    100
#define PAYLOAD_KEYS_MAX  10
#define PAYLOAD_MAX_BYTES (64 * 1024)

/* What GitHub refuses, in its words; false: nothing. */
static bool refused(const struct call *call, struct reply *reply)
{
    struct str event_type = call_text(call, "event_type");
    json_t *payload = json_object_get(call->body, "client_payload");
    size_t keys = json_object_size(payload);

    if (!event_type.len)
        reply_error(reply, 422, "Invalid request.\n\n\"event_type\" wasn't supplied.");
    else if (event_type.len > EVENT_TYPE_MAX)
        reply_error(reply, 422,
                    "Invalid request.\n\nevent_type is too long (maximum is %d characters)",
                    EVENT_TYPE_MAX);
    else if (payload && !json_is_object(payload))
        reply_error(reply, 422, "Invalid request.\n\nclient_payload is not an object.");
    else if (keys > PAYLOAD_KEYS_MAX)
        reply_error(
            reply, 422,
            "Invalid request.\n\nNo more than %d properties are allowed; %zu were supplied.",
            PAYLOAD_KEYS_MAX, keys);
    else if (payload && json_dumpb(payload, NULL, 0, JSON_COMPACT) >= PAYLOAD_MAX_BYTES)
        reply_error(reply, 422, "client_payload is too large.");
    else
        return false;
    return true;
}

void dispatches_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct downstream *settings = downstreams_find(sim->downstreams, call->repo);
    json_t *payload = json_object_get(call->body, "client_payload");
    struct str event_type = call_text(call, "event_type");
    struct run *run;

    if (!settings || !settings->installed) {
        reply_error(reply, 404, "Not Found");
        downstream_release(settings);
        return;
    }
    if (refused(call, reply)) {
        downstream_release(settings);
        return;
    }
    payload = payload ? json_incref(payload) : json_object();
    run = runs_add(sim->runs, call->repo, json_incref(payload), settings, call->now_ms);
    rows_put(sim->dispatches,
             json_pack("{s:s%, s:s%, s:o, s:I, s:I}", "repo", call->repo.ptr, call->repo.len,
                       "event_type", event_type.ptr, event_type.len, "client_payload", payload,
                       "at_ms", (json_int_t)call->now_ms, "run_id", (json_int_t)run->id));
    history_dispatch(sim->history, call, run);
    reaction_begin(sim, run);
    reply_empty(reply, 204);
}
