#include "hud.h"

#include <jansson.h>

#include "history.h"
#include "options.h"
#include "rows.h"
#include "sim.h"

#define BODY_MAX_BYTES (2u << 20)

static const char *body_fault(const json_t *body)
{
    const json_t *trusted = json_object_get(body, "trusted");
    const json_t *callback =
        json_object_get(json_object_get(body, "untrusted"), "callback_payload");

    if (!json_is_string(json_object_get(trusted, "verified_repo")))
        return "trusted.verified_repo is missing";
    if (!json_object_get(trusted, "downstream_repo_level"))
        return "trusted.downstream_repo_level is missing";
    if (!json_is_object(json_object_get(trusted, "ci_metrics")))
        return "trusted.ci_metrics is missing";
    if (!json_is_object(json_object_get(callback, "workflow")))
        return "untrusted.callback_payload.workflow is missing";
    if (json_object_get(callback, "callback_token"))
        return "untrusted.callback_payload holds a callback_token";
    return NULL;
}

void hud_post(struct sim *sim, const struct call *call, struct reply *reply)
{
    const char *wanted = sim->options->hud_key;
    struct str key = headers_get(call->headers, "x-hud-internal-bot");
    const char *fault = body_fault(call->body);

    if (!key.len || (wanted && !str_is(key, wanted))) {
        reply_json(reply, 401,
                   json_pack("{s:s}", "error", "x-hud-internal-bot is missing or wrong"));
    } else if (call->text.len > BODY_MAX_BYTES) {
        reply_json(reply, 413, json_pack("{s:s}", "error", "the body is too large"));
    } else if (fault) {
        reply_json(reply, 400, json_pack("{s:s}", "error", fault));
    } else {
        rows_put(sim->hud, json_incref(call->body));
        history_hud(sim->history, call->body);
        reply_json(reply, 200, json_pack("{s:b}", "ok", 1));
    }
}
