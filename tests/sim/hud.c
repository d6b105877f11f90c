#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/mem.h"
#include "hud.h"
#include "sim.h"

#define BODY_MAX_BYTES (2u << 20)

struct hud {
    const char *key;
    json_t *rows;
};

struct hud *hud_new(const char *key)
{
    struct hud *h = mem_alloc(1, sizeof(*h));

    h->key = key;
    h->rows = json_array();
    return h;
}

void hud_reset(struct hud *h)
{
    json_array_clear(h->rows);
}

void hud_free(struct hud *h)
{
    if (!h)
        return;
    json_decref(h->rows);
    free(h);
}

json_t *hud_describe(const struct hud *h)
{
    return json_copy(h->rows);
}

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
    struct hud *h = sim->hud;
    struct str key = headers_get(call->headers, "x-hud-internal-bot");
    const char *fault = body_fault(call->body);

    if (!key.len || (h->key && !str_is(key, h->key))) {
        reply_json(reply, 401,
                   json_pack("{s:s}", "error", "x-hud-internal-bot is missing or wrong"));
    } else if (call->text.len > BODY_MAX_BYTES) {
        reply_json(reply, 413, json_pack("{s:s}", "error", "the body is too large"));
    } else if (fault) {
        reply_json(reply, 400, json_pack("{s:s}", "error", fault));
    } else {
        json_array_append(h->rows, call->body);
        reply_json(reply, 200, json_pack("{s:b}", "ok", 1));
    }
}
