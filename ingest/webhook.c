#include "webhook.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/percent.h"
#include "../common/model/ids.h"

/* ---- forms ---------------------------------------------------------------------------------- */

bool form_is(struct str content_type)
{
    ptrdiff_t end = str_find(content_type, ';');
    if (end >= 0)
        content_type.len = (size_t)end;
    return str_eq_nocase(str_trim(content_type), STR_LIT("application/x-www-form-urlencoded"));
}

enum err form_payload(struct str body, char **ret, size_t *len, struct why *why)
{
    const char name[] = "payload=";
    struct str field, found = STR_NONE;
    while (str_split(&body, '&', &field)) {
        if (!str_starts(field, name))
            continue;
        if (found.ptr)
            return why_set(why, ERR_REFUSE, "the form has more than one payload");
        found = str_from(field, sizeof(name) - 1);
    }
    if (!found.ptr)
        return why_set(why, ERR_REFUSE, "the form has no payload");
    char *text = malloc(found.len + 1);
    if (!text)
        return why_set(why, ERR_RETRY, "no memory for the body");
    struct str decoded = percent_decode(found, true, text);
    if (!decoded.ptr) {
        free(text);
        return why_set(why, ERR_REFUSE, "the form has a %% without two hex digits");
    }
    text[decoded.len] = '\0';
    *len = decoded.len;
    *ret = text;
    return OK;
}

/* ---- the rules ------------------------------------------------------------------------------ */

bool webhook_head_check(const struct webhook_rules *rules, const struct webhook_head *head,
                        struct answer *a)
{
    struct str hex;
    if (!head->signature.ptr)
        return answer_refuse(a, 400, "signature_missing", "X-Hub-Signature-256 is missing");
    if (!signature_form(head->signature, &hex))
        return answer_refuse(a, 401, "signature_malformed",
                             "X-Hub-Signature-256 is not sha256= and 64 hex digits");
    if (str_is(head->target_type, "integration") && head->target_id.ptr && rules->app_id.ptr &&
        !str_eq(head->target_id, rules->app_id))
        return answer_refuse(a, 401, "other_app", "this webhook is for another GitHub App");
    if (!head->event.ptr)
        return answer_refuse(a, 400, "event_missing", "X-GitHub-Event is missing");
    return true;
}

static bool body_decode(const struct webhook_head *head, struct str *body,
                        struct webhook_record *ret, struct answer *a)
{
    if (!form_is(head->content_type))
        return true;
    struct why why;
    enum err err = form_payload(*body, &ret->decoded, &ret->decoded_len, &why);
    if (err == ERR_RETRY)
        return answer_later(a, 503, "no_memory", 2, "%s", why.text);
    if (err)
        return answer_refuse(a, 400, "body_malformed", "%s", why.text);
    *body = (struct str){ ret->decoded, ret->decoded_len };
    return true;
}

static bool ignore(struct answer *a, const char *reason)
{
    char answer[96];
    (void)snprintf(answer, sizeof(answer), "{\"ignored\":true,\"reason\":\"%s\"}", reason);
    return answer_ignore(a, reason, answer);
}

static bool steps(const struct webhook_rules *rules, const struct webhook_head *head,
                  struct str body, int64_t received_ms, struct webhook_record *ret,
                  struct answer *a)
{
    struct str hex;
    if (!webhook_head_check(rules, head, a))
        return false;
    if (!signature_form(head->signature, &hex) || !signature_matches(&rules->secrets, body, hex))
        return answer_refuse(a, 401, "signature_bad", "the signature does not match the body");
    enum event_kind kind = event_kind_of(head->event);
    if (kind == EVENT_OTHER)
        return ignore(a, "other_event");
    if (!delivery_valid(head->delivery))
        return answer_refuse(a, 400, "delivery_malformed",
                             "X-GitHub-Delivery is missing or not [A-Za-z0-9-]{1,%d}",
                             DELIVERY_MAX);
    if (!body_decode(head, &body, ret, a))
        return false;
    struct why why;
    const char *reason;
    enum event_verdict said =
        event_classify(&rules->events, kind, body, &ret->facts, &reason, &why);
    if (said == EVENT_IGNORED)
        return ignore(a, reason);
    if (said != EVENT_ACCEPTED)
        return answer_refuse(a, 400, reason, "%s", why.text);
    ret->event = event_of_facts(kind, &ret->facts);
    ret->event.delivery = head->delivery;
    ret->event.source = STR_LIT("webhook");
    ret->event.received_ms = received_ms;
    buf_init(&ret->key, EVENT_KEY_MAX);
    event_key(&ret->key, kind, &ret->facts);
    return true;
}

bool webhook_check(const struct webhook_rules *rules, const struct webhook_head *head,
                   struct str body, int64_t received_ms, struct webhook_record *ret,
                   struct answer *a)
{
    ret->decoded = NULL;
    buf_init(&ret->key, 0);
    if (steps(rules, head, body, received_ms, ret, a))
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

/* ---- the route ------------------------------------------------------------------------------ */

static struct webhook_head head_of(const struct http_exchange *x)
{
    return (struct webhook_head){
        .signature = http_header(x, "X-Hub-Signature-256"),
        .event = http_header(x, "X-GitHub-Event"),
        .delivery = http_header(x, "X-GitHub-Delivery"),
        .target_type = http_header(x, "X-GitHub-Hook-Installation-Target-Type"),
        .target_id = http_header(x, "X-GitHub-Hook-Installation-Target-ID"),
        .content_type = http_header(x, "Content-Type"),
    };
}

void webhook_begin(const struct webhook_route *route, struct http_exchange *x)
{
    const struct webhook_head head = head_of(x);
    struct answer a;
    if (webhook_head_check(&route->rules, &head, &a))
        return;
    struct request request;
    request_init(&request, x, &webhook_names, head.delivery);
    responder_answer(route->responder, &request, &a);
}

void webhook_handle(const struct webhook_route *route, struct http_exchange *x)
{
    const struct webhook_head head = head_of(x);
    struct request request;
    request_init(&request, x, &webhook_names, head.delivery);
    request.started_us = clock_mono_us();
    struct webhook_record record;
    struct answer a;
    if (!webhook_check(&route->rules, &head, http_body(x), http_received_ms(x), &record, &a)) {
        responder_answer(route->responder, &request, &a);
        return;
    }
    struct headers headers;
    headers_init(&headers);
    event_to_headers(&record.event, &headers);
    char answer[128];
    int n =
        snprintf(answer, sizeof(answer), "{\"ok\":true,\"delivery_id\":\"%s\"}", request.delivery);
    struct publication publication = { .topic = route->topic,
                                       .key = buf_str(&record.key),
                                       .headers = &headers,
                                       .value = record.decoded,
                                       .value_len = record.decoded_len,
                                       .status = 202,
                                       .answer = { answer, (size_t)n } };
    record.decoded = NULL;
    if (!publication.value)
        publication.value = http_take_body(x, &publication.value_len);
    responder_publish(route->responder, &request, &publication);
    webhook_record_clear(&record);
}
