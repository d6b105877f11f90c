/* GET requests to GitHub as the App, one after the other. Rate limits are waited for; a request
 * without an answer is sent again. */
#ifndef CRCR_CTL_APP_API_H
#define CRCR_CTL_APP_API_H

#include "../../common/base/buf.h"
#include "ctl.h"

struct app_api;

/* From GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY, CRCR_GITHUB_API_URL. ERR_STOP names what is missing
 * or malformed. */
enum err app_api_new(struct app_api **ret, const struct ctl *ctl, struct why *why) MUST_CHECK;
/* NULL is fine. */
void app_api_free(struct app_api *a);
#define CURSOR_SIZE 256
struct app_request {
    const char *path;
    struct str repo; /* as the App's installation on that repository; absent: as the App */
    bool raw;        /* a file's own bytes */
    bool once;       /* ERR_UNKNOWN after the first try */
    char *cursor;    /* CURSOR_SIZE bytes for the next page's, "" when there is none; or NULL */
};
/* Puts the body of a 2xx into body (reset first). *status, unless NULL: what GitHub answered, 0
 * without an answer. ERR_REFUSE: GitHub refused for good, or the body does not fit the buffer.
 * ERR_UNKNOWN: 5xx, or no answer, after several tries. ERR_RETRY: no connection, or 401, after as
 * many; or the program is to stop. */
enum err app_api_get(struct app_api *a, const struct app_request *wanted, struct buf *body,
                     int *status, struct why *why) MUST_CHECK;

#endif
