/* A record of the topic callbacks as a fact about one job. The headers are the identity; the body
 * only describes the job. PURE. */
#ifndef CRCR_REPORTER_CALLBACK_FACT_H
#define CRCR_REPORTER_CALLBACK_FACT_H

#include "../common/base/headers.h"
#include "../common/model/result_record.h"

#define FAILED_TESTS_KEPT 20 /* in the view and in results; the topic callbacks has all */

struct callback_fact {
    struct result_record job; /* state: what the callback reports */
    int64_t received_ms;
    bool pending; /* its dispatch is not known yet: pull request, commit and time are missing */
};

/* ERR_REFUSE (poison): a header is missing or malformed, or the body is none of a callback.
 * On OK the caller clears ret->job. */
enum err callback_fact_read(const struct headers *headers, struct str body,
                            const char *upstream_repo, struct callback_fact *ret,
                            struct why *why) MUST_CHECK;

#endif
