/* Private to common/github: an access token of the App for each repository and permission, looked
 * up once however many calls wait for it. A token that is stolen gives that much for an hour, not
 * all that the App may do.
 *
 *   owner ──▶ no id ──GET /repos/o/r/installation──▶ id ──POST access_tokens──▶ token
 *               ▲                                    │404: reinstalled             │ 401, or 5 min
 *               └────────────────────────────────────┘◀────────────────────────────┘ before its end
 *
 * An App can be installed at most once for an owner, so its id is the owner's. A failed look-up is
 * remembered for its repository and permission, a refusal for a minute, so that nothing hammers.
 * One thread.
 * https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app */
#ifndef CRCR_GITHUB_APP_TOKEN_H
#define CRCR_GITHUB_APP_TOKEN_H

#include "api_call.h"
#include "app_jwt.h"

struct app_tokens;

struct app_token_waiter;
/* token is NULL when there is none: failure is then the answer that the call gets. Both borrowed.
 */
typedef void app_token_fn(struct app_token_waiter *w, const char *token,
                          const struct github_answer *failure);
/* Lives inside the call that waits; zeroed while it does not. */
struct app_token_waiter {
    app_token_fn *done;
    struct str repo; /* the caller's, for as long as it waits */
    enum github_permission permission;
    void *opaque;
    struct app_token_waiter *prev, *next;
};

/* All are borrowed; api->url too. */
struct app_tokens *app_tokens_new(const struct api *api, struct app_jwt *jwt,
                                  struct gate_user *gate);
/* Waiters are forgotten, not called. NULL is fine. */
void app_tokens_free(struct app_tokens *t);

/* The token for that repo and permission if one is at hand, else NULL. */
const char *app_token_cached(struct app_tokens *t, struct str repo,
                             enum github_permission permission);
/* True when it is known already that there is none to be had now: *ret is the call's answer. */
bool app_token_blocked(struct app_tokens *t, struct str repo, enum github_permission permission,
                       struct github_answer *ret);
/* Calls w->done later, from http_client_poll, when this returns OK. */
enum err app_token_wait(struct app_tokens *t, struct app_token_waiter *w,
                        struct why *why) MUST_CHECK;
void app_token_unwait(struct app_tokens *t, struct app_token_waiter *w);
/* GitHub did not take that token: forget it, unless another is in its place already. */
void app_token_drop(struct app_tokens *t, struct str repo, enum github_permission permission,
                    const char *token);

#endif
