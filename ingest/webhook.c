#include "webhook.h"

#include <stdlib.h>

#include "../common/model/ids.h"
#include "form.h"

bool webhook_head_check(const struct webhook_rules *rules, const struct webhook_head *head,
                        struct verdict *v)
{
    struct str hex;
    if (!head->signature.ptr)
        return verdict_refuse(v, 400, "signature_missing", "X-Hub-Signature-256 is missing");
    if (!signature_form(head->signature, &hex))
        return verdict_refuse(v, 401, "signature_malformed",
                              "X-Hub-Signature-256 is not sha256= and 64 hex digits");
    if (str_is(head->target_type, "integration") && head->target_id.ptr && rules->app_id.ptr &&
        !str_eq(head->target_id, rules->app_id))
        return verdict_refuse(v, 401, "other_app", "this webhook is for another GitHub App");
    if (!head->event.ptr)
        return verdict_refuse(v, 400, "event_missing", "X-GitHub-Event is missing");
    return true;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static bool body_decode(const struct webhook_head *head, struct str *body,
                        struct webhook_record *ret, struct verdict *v)
{
    if (!form_is(head->content_type))
        return true;
    struct why why;
    enum err err = form_payload(*body, &ret->decoded, &ret->decoded_len, &why);
    if (err == ERR_RETRY)
        return verdict_later(v, 503, "no_memory", 2, "%s", why.text);
    if (err)
        return verdict_refuse(v, 400, "body_malformed", "%s", why.text);
    *body = (struct str){ ret->decoded, ret->decoded_len };
    return true;
}

/* Steps 3 and 4: what the body says. */
static bool body_check(const struct event_rules *rules, enum event_kind kind, struct str body,
                       struct event_facts *facts, struct verdict *v)
{
    struct why why;
    const char *reason;
    switch (event_classify(rules, kind, body, facts, &reason, &why)) {
    case EVENT_ACCEPTED:
        return true;
    case EVENT_IGNORED:
        return verdict_ignore(v, reason, WEBHOOK_IGNORED);
    case EVENT_MALFORMED:
        break;
    }
    return verdict_refuse(v, 400, reason, "%s", why.text);
}

static void record_fill(const struct webhook_head *head, enum event_kind kind, int64_t received_ms,
                        struct webhook_record *ret)
{
    ret->event = event_of_facts(kind, &ret->facts);
    ret->event.delivery = head->delivery;
    ret->event.source = STR_LIT("webhook");
    ret->event.received_ms = received_ms;
    buf_init(&ret->key, EVENT_KEY_MAX);
    event_key(&ret->key, kind, &ret->facts);
}

static bool steps(const struct webhook_rules *rules, const struct webhook_head *head,
                  struct str body, int64_t received_ms, struct webhook_record *ret,
                  struct verdict *v)
{
    struct str hex;
    if (!webhook_head_check(rules, head, v))
        return false;
    if (!signature_form(head->signature, &hex) || !signature_matches(&rules->secrets, body, hex))
        return verdict_refuse(v, 401, "signature_bad", "the signature does not match the body");
    enum event_kind kind = event_kind_of(head->event);
    if (kind == EVENT_OTHER)
        return verdict_ignore(v, "other_event", WEBHOOK_IGNORED);
    if (!delivery_valid(head->delivery))
        return verdict_refuse(v, 400, "delivery_malformed",
                              "X-GitHub-Delivery is missing or not [A-Za-z0-9-]{1,%d}",
                              DELIVERY_MAX);
    if (!body_decode(head, &body, ret, v) ||
        !body_check(&rules->events, kind, body, &ret->facts, v))
        return false;
    record_fill(head, kind, received_ms, ret);
    return true;
}

bool webhook_check(const struct webhook_rules *rules, const struct webhook_head *head,
                   struct str body, int64_t received_ms, struct webhook_record *ret,
                   struct verdict *v)
{
    ret->decoded = NULL;
    buf_init(&ret->key, 0);
    if (steps(rules, head, body, received_ms, ret, v))
        return true;
    webhook_record_clear(ret);
    return false;
}

void webhook_record_clear(struct webhook_record *r)
{
    buf_clear(&r->key);
    free(r->decoded);
    r->decoded = NULL;
}
