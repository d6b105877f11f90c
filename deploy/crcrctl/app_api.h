/* GET requests to GitHub as the App, one after the other: limits are waited out, lost
 * answers asked for again. */
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
/* The body of a 2xx into body (reset first), and the cursor of the next page ("" when there is
 * none; NULL: not wanted). ERR_REFUSE: GitHub said never. ERR_UNKNOWN: 5xx, or no answer to what
 * was sent, after several tries. ERR_RETRY: nobody to send it to, or 401, after as many; or the
 * program is to stop. A body larger than the buffer may be is refused. */
#define CURSOR_SIZE 256
enum err app_api_get(struct app_api *a, const char *path, struct buf *body,
                     char cursor[CURSOR_SIZE], struct why *why) MUST_CHECK;
/* The same, but ERR_UNKNOWN after the first try. */
enum err app_api_get_once(struct app_api *a, const char *path, struct buf *body,
                          struct why *why) MUST_CHECK;
/* The same as the App's installation on repo; raw: a file's own bytes. *status: what GitHub
 * answered, 0 when there was no answer, or none was needed. */
enum err app_api_get_of(struct app_api *a, struct str repo, const char *path, bool raw,
                        struct buf *body, int *status, struct why *why) MUST_CHECK;

#endif
