/* POST /github/webhook: checks a webhook, and gives it to the responder. */
#ifndef CRCR_INGEST_WEBHOOK_H
#define CRCR_INGEST_WEBHOOK_H

#include "../common/base/buf.h"
#include "../common/model/event_rules.h"
#include "answer.h"
#include "responder.h"
#include "signature.h"

struct webhook_rules {
    struct signature_secrets secrets;
    struct event_rules events;
    struct str app_id; /* absent: not compared */
};

struct webhook_route {
    struct responder *responder;
    struct webhook_rules rules;
    const char *topic;
};

/* Before the body is read. */
void webhook_begin(const struct webhook_route *route, struct http_exchange *x);
/* With the complete body; on a thread of the HTTP server, which it never blocks. */
void webhook_handle(const struct webhook_route *route, struct http_exchange *x);

/* ---- the rules: PURE ------------------------------------------------------------------------ */

/* The headers that are looked at; absent ones are STR_NONE. */
struct webhook_head {
    struct str signature;   /* X-Hub-Signature-256 */
    struct str event;       /* X-GitHub-Event */
    struct str delivery;    /* X-GitHub-Delivery */
    struct str target_type; /* X-GitHub-Hook-Installation-Target-Type */
    struct str target_id;   /* X-GitHub-Hook-Installation-Target-ID */
    struct str content_type;
};

/* The record to publish. Its value is `decoded` if that is not NULL, else the body itself. */
struct webhook_record {
    struct event event; /* borrows from the head and from facts */
    struct event_facts facts;
    struct buf key;
    char *decoded; /* the JSON of a form, malloc'ed */
    size_t decoded_len;
};

/* The checks that need no body: form of the signature, target, event. */
bool webhook_head_check(const struct webhook_rules *rules, const struct webhook_head *head,
                        struct answer *a) MUST_CHECK;
/* All checks, in their order. True: publish *ret, the caller's to clear. */
bool webhook_check(const struct webhook_rules *rules, const struct webhook_head *head,
                   struct str body, int64_t received_ms, struct webhook_record *ret,
                   struct answer *a) MUST_CHECK;
void webhook_record_clear(struct webhook_record *r);

/* For webhooks with the content type application/x-www-form-urlencoded, which have the JSON in the
 * field "payload". */
/* True when a Content-Type header says that the body is a form; parameters are ignored. */
bool form_is(struct str content_type);
/* The decoded payload as a malloc'ed block, the caller's. ERR_REFUSE: there is no payload, more
 * than one, or a % without two hex digits. ERR_RETRY: no memory. */
enum err form_payload(struct str body, char **ret, size_t *len, struct why *why) MUST_CHECK;

#endif
