/* A result as the HUD's API takes it: what the relay vouches for, and what the downstream says.
 * PURE. */
#ifndef CRCR_REPORTER_FORWARD_BODY_H
#define CRCR_REPORTER_FORWARD_BODY_H

#include "../common/model/result_record.h"

/* Appends {"trusted":{…},"untrusted":{"callback_payload":{…}}}. */
void forward_body(const struct result_record *record, struct buf *to);

enum forward_verdict {
    FORWARD_SENT,
    FORWARD_WAIT,   /* 5xx, 408, 429, no answer: the same again, later */
    FORWARD_REFUSED /* anything else: the same again fails again */
};
/* status 0: no answer. */
enum forward_verdict forward_classify(int status);

#endif
