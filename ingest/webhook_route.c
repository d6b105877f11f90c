#include "webhook_route.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/base/clock.h"

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
    struct verdict v;
    if (webhook_head_check(&route->rules, &head, &v))
        return;
    struct request request;
    request_init(&request, x, &webhook_names, head.delivery);
    responder_answer(route->responder, &request, &v);
}

/* The bytes to publish, the caller's: the body itself, or what a form held. */
static char *value_take(struct webhook_record *record, struct http_exchange *x, size_t *len)
{
    if (!record->decoded)
        return http_take_body(x, len);
    char *value = record->decoded;
    *len = record->decoded_len;
    record->decoded = NULL;
    return value;
}

static void publish(const struct webhook_route *route, const struct request *request,
                    struct webhook_record *record)
{
    struct headers headers;
    headers_init(&headers);
    event_to_headers(&record->event, &headers);
    char answer[128];
    int n =
        snprintf(answer, sizeof(answer), "{\"ok\":true,\"delivery_id\":\"%s\"}", request->delivery);
    struct publication publication = { .topic = route->topic,
                                       .key = buf_str(&record->key),
                                       .headers = &headers,
                                       .status = 202,
                                       .answer = { answer, (size_t)n } };
    publication.value = value_take(record, request->x, &publication.value_len);
    responder_publish(route->responder, request, &publication);
}

void webhook_handle(const struct webhook_route *route, struct http_exchange *x)
{
    const struct webhook_head head = head_of(x);
    struct request request;
    request_init(&request, x, &webhook_names, head.delivery);
    request.started_us = clock_mono_us();
    struct webhook_record record;
    struct verdict v;
    if (!webhook_check(&route->rules, &head, http_body(x), http_received_ms(x), &record, &v)) {
        responder_answer(route->responder, &request, &v);
        return;
    }
    publish(route, &request, &record);
    webhook_record_clear(&record);
}
