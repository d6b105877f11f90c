/* Private to common/github: the JWT with which the App speaks for itself
 * (https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app). */
#ifndef CRCR_GITHUB_APP_JWT_H
#define CRCR_GITHUB_APP_JWT_H

#include "../crypto/jwt.h"

struct app_jwt {
    char *app_id;
    const struct jwt_key *key; /* borrowed */
    char *text;                /* NULL: to be signed */
    int64_t signed_ms;         /* monotonic */
};

void app_jwt_init(struct app_jwt *j, const char *app_id, const struct jwt_key *key);
void app_jwt_clear(struct app_jwt *j);
/* Signed anew when it is older than 8 minutes; borrowed until the next call. */
enum err app_jwt_get(struct app_jwt *j, const char **ret, struct why *why) MUST_CHECK;
/* GitHub did not take it. */
void app_jwt_drop(struct app_jwt *j);

#endif
