/* One POST, waited for: what the verbs that send something share. */
#ifndef CRCR_CTL_POST_H
#define CRCR_CTL_POST_H

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

/* Plain http is let through: it is for trying; https asks CRCR_CA_FILE. An error is a malformed
 * request; no answer is OK with status 0. */
enum err post_wait(const struct ctl *ctl, const char *user_agent, const char *url,
                   const struct headers *headers, struct str body, struct post_answer *ret,
                   struct why *why) MUST_CHECK;
/* "202 in 3.2 ms  <what>  <answer>", and the exit code that fits: 0 for 2xx, 1 for another answer,
 * 3 for none ("is <who> running there?"). */
int post_print(const struct ctl *ctl, const char *url, const char *what, const char *who,
               const struct post_answer *answer);

#endif
