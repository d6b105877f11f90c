/* Private to common/github: one request to the API under a given authorization, a redirect followed
 * once, and the answer classified. */
#ifndef CRCR_GITHUB_API_CALL_H
#define CRCR_GITHUB_API_CALL_H

#include "github.h"

struct api {
    const char *url;            /* no slash at the end */
    struct http_client *client; /* borrowed */
};

/* What request points to is borrowed until done, but for path; token is copied. done comes exactly
 * once, from http_client_poll or _free, when this returns OK. */
enum err api_call_start(const struct api *api, const struct github_request *request,
                        const char *token, github_answered_fn *done, void *opaque,
                        struct why *why) MUST_CHECK;

#endif
