/* What becomes of a webhook (behaviour.md, POST /github/webhook). PURE: bytes and headers in,
 * decision out. */
#ifndef CRCR_INGEST_WEBHOOK_H
#define CRCR_INGEST_WEBHOOK_H

#include "../common/base/buf.h"
#include "../common/model/event_rules.h"
#include "signature.h"
#include "verdict.h"

#define WEBHOOK_IGNORED "{\"ignored\":true}"

struct webhook_rules {
    struct signature_secrets secrets;
    struct event_rules events;
    struct str app_id; /* absent: not compared */
};

/* The headers that count; absent ones are STR_NONE. */
struct webhook_head {
    struct str signature;   /* X-Hub-Signature-256 */
    struct str event;       /* X-GitHub-Event */
    struct str delivery;    /* X-GitHub-Delivery */
    struct str target_type; /* X-GitHub-Hook-Installation-Target-Type */
    struct str target_id;   /* X-GitHub-Hook-Installation-Target-ID */
    struct str content_type;
};

/* The record to publish. The value is decoded when that is not NULL, else the body itself. */
struct webhook_record {
    struct event event; /* borrows from the head and from facts */
    struct event_facts facts;
    struct buf key;
    char *decoded; /* the JSON of a form, malloc'ed */
    size_t decoded_len;
};

/* What can be told before the body is read: form of the signature, target, event. */
bool webhook_head_check(const struct webhook_rules *rules, const struct webhook_head *head,
                        struct verdict *v) MUST_CHECK;
/* All steps, in their order. True: publish *ret, the caller's to clear. */
bool webhook_check(const struct webhook_rules *rules, const struct webhook_head *head,
                   struct str body, int64_t received_ms, struct webhook_record *ret,
                   struct verdict *v) MUST_CHECK;
void webhook_record_clear(struct webhook_record *r);

#endif
