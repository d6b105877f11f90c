/* Private to common/github: one access token of the App per repository and permission. However many
 * calls wait for it, one request fetches it. A stolen token gives that permission on that
 * repository for an hour, not all that the App may do.
 *
 *   owner ──▶ no id ──GET /repos/o/r/installation──▶ id ──POST access_tokens──▶ token
 *               ▲                                    │404: reinstalled             │ 401, or 5 min
 *               └────────────────────────────────────┘◀────────────────────────────┘ before its end
 *
 * An owner has at most one installation of an App, so the installation id is kept per owner. A
 * failed request is remembered per repository and permission, a refusal for a minute, so that
 * GitHub is not asked again and again. One thread.
 * https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app */
#ifndef CRCR_GITHUB_APP_TOKEN_H
#define CRCR_GITHUB_APP_TOKEN_H

#include "api_call.h"
#include "app_jwt.h"

struct app_tokens;

struct app_token_waiter;
/* token NULL: there is none, and failure is the call's answer. Both are borrowed. */
typedef void app_token_fn(struct app_token_waiter *w, const char *token,
                          const struct github_answer *failure);
/* A member of the waiting call; zeroed while the call does not wait. */
struct app_token_waiter {
    app_token_fn *done;
    struct str repo; /* borrowed while it waits */
    enum github_permission permission;
    void *opaque;
    struct app_token_waiter *prev, *next;
};

/* All are borrowed; api->url too. */
struct app_tokens *app_tokens_new(const struct api *api, struct app_jwt *jwt,
                                  struct gate_user *gate);
/* Does not call the waiters. NULL is fine. */
void app_tokens_free(struct app_tokens *t);

/* The cached token for that repo and permission, or NULL. */
const char *app_token_cached(struct app_tokens *t, struct str repo,
                             enum github_permission permission);
/* True if the last request failed and may not be repeated yet: *ret is the call's answer. */
bool app_token_blocked(struct app_tokens *t, struct str repo, enum github_permission permission,
                       struct github_answer *ret);
/* OK: calls w->done later, from http_client_poll. */
enum err app_token_wait(struct app_tokens *t, struct app_token_waiter *w,
                        struct why *why) MUST_CHECK;
void app_token_unwait(struct app_tokens *t, struct app_token_waiter *w);
/* GitHub refused that token: drop it, unless a newer one has replaced it. */
void app_token_drop(struct app_tokens *t, struct str repo, enum github_permission permission,
                    const char *token);

#endif
