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

/* All borrowed. */
struct dispatch {
    struct str repo;           /* downstream */
    const char *event_type;    /* pull_request, push */
    struct str delivery;       /* validated: goes into the text without escapes */
    struct str payload;        /* JSON as ingest took it, fitted by the router; spliced verbatim */
    struct str callback_token; /* absent when no key is configured */
    struct str trimmed;        /* JSON array of what the router dropped; absent: nothing */
    int64_t claimed_ms;        /* monotonic: it is ours since then, unless we stood still */
};

/* The request body (PURE). The list of what was trimmed goes first when all together would be too
 * large; ERR_REFUSE when it still is. */
enum err dispatch_body(struct buf *to, const struct dispatch *d, struct why *why) MUST_CHECK;
/* POST /repos/{repo}/dispatches. Asynchronous as github_start; everything is copied. */
enum err dispatch_start(struct github *g, const struct dispatch *d, github_answered_fn *done,
                        void *opaque, struct why *why) MUST_CHECK;

#endif
