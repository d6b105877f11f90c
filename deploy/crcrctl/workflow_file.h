/* Whether a GitHub Actions workflow starts on the relay's repository_dispatch
 * (https://docs.github.com/en/actions/reference/events-that-trigger-workflows#repository_dispatch).
 * PURE. */
#ifndef CRCR_CTL_WORKFLOW_FILE_H
#define CRCR_CTL_WORKFLOW_FILE_H

#include "../../common/base/err.h"
#include "../../common/base/str.h"

struct workflow_events {
    bool listens;      /* to repository_dispatch at all */
    bool pull_request; /* to that type of it; a workflow that names no types takes them all */
    bool push;
};

/* name is for the error. ERR_REFUSE: it cannot be read: not YAML, or something that our reader does
 * not take (anchors, tags). */
enum err workflow_file_read(struct str yaml, const char *name, struct workflow_events *ret,
                            struct why *why) MUST_CHECK;

#endif
