/* One POST, waited for. */
#ifndef CRCR_CTL_SEND_H
#define CRCR_CTL_SEND_H

#include "../../common/base/buf.h"
#include "../../common/base/headers.h"
#include "ctl.h"

/* What came back; text is to be cleared. */
struct post_answer {
    bool done;
    int status; /* 0: none */
    int64_t micros;
    struct buf text; /* the body, or why there is none */
};

/* Plain http is accepted: it is for trying; https asks CRCR_CA_FILE. *ret is always to be cleared.
 * ERR_REFUSE: no such URL. */
enum err post(const struct ctl *ctl, const char *user_agent, const char *url,
              const struct headers *headers, struct str body, struct post_answer *ret,
              struct why *why) MUST_CHECK;

#endif
