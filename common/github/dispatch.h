/* repository_dispatch:
 * https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event
 */
#ifndef CRCR_GITHUB_DISPATCH_H
#define CRCR_GITHUB_DISPATCH_H

#include "../base/buf.h"
#include "github.h"

/* GitHub: client_payload has under 64 KB and at most 10 top-level keys, event_type at most 100
 * characters. */
#define DISPATCH_PAYLOAD_MAX_BYTES 65535

/* Signs the callback token of a call that is sent at sent_ms (wall clock); *ret is the caller's. */
typedef enum err dispatch_sign_fn(void *opaque, int64_t sent_ms, char **ret, struct why *why);

/* All borrowed until the answer. */
struct dispatch {
    struct str repo;        /* downstream */
    const char *event_type; /* pull_request, push */
    struct str delivery;    /* validated: goes into the text without escapes */
    struct str payload;     /* JSON as ingest took it, fitted by the router; spliced verbatim */
    dispatch_sign_fn *sign; /* NULL: no callback token */
    void *sign_opaque;
    struct str trimmed; /* JSON array of what the router dropped; absent: nothing */
    int64_t send_by_ms; /* clock_boot_ms: its claim may be another's soon after; 0: whenever */
    bool inside, paid;  /* as in github_request */
};

/* The request body; callback_token may be absent (PURE). The list of what was trimmed goes first
 * when all together would be too large; ERR_REFUSE when it still is. */
enum err dispatch_body(struct buf *to, const struct dispatch *d, struct str callback_token,
                       struct why *why) MUST_CHECK;
/* POST /repos/{repo}/dispatches. Asynchronous as github_start. When GitHub answers 422 "too large"
 * (it may count escaped bytes) the payload is fitted to half and sent once more; what can be cut no
 * further, and a second 422, are the answer. */
enum err dispatch_start(struct github *g, const struct dispatch *d, github_answered_fn *done,
                        void *opaque, struct why *why) MUST_CHECK;

#endif
