/* The GitHub App: who may call (App JWT, installation tokens), its installations, and the rate
 * limit of each. */
#ifndef CRCR_SIM_APP_H
#define CRCR_SIM_APP_H

#include "call.h"

struct app;

struct app_options {
    const char *app_id;
    struct str key_pem;    /* the App's private key; its public half checks the App's JWTs */
    int64_t token_ttl_s;   /* of installation tokens */
    int64_t rate_limit;    /* requests an hour and installation */
    int64_t content_limit; /* creations an installation and window; 0: none */
    int64_t content_window_ms;
};

enum err app_new(struct app **ret, const struct app_options *options, struct why *why) MUST_CHECK;
void app_free(struct app *app);
/* Forgets tokens and used budgets. */
void app_reset(struct app *app);

enum auth { AUTH_NONE, AUTH_APP, AUTH_INSTALLATION };
/* Judges the Authorization header; on AUTH_INSTALLATION sets call->installation, and the token must
 * have permission ("contents:write"). False: refused, the reply says how, as GitHub would. */
bool app_authorise(struct app *app, enum auth need, const char *permission, struct call *call,
                   struct reply *reply);
/* Takes one request off the installation's budget and sets the x-ratelimit headers; call 0 for
 * requests of the App itself. False: it was used up, the reply is a 403. */
bool app_budget(struct app *app, const struct call *call, struct reply *reply);
/* Counts what creates content, in a window that slides. False: one too many, the reply is a 403 of
 * the secondary limit. */
bool app_content(struct app *app, const struct call *call, struct reply *reply);
/* The App as check runs carry it. The caller's. */
json_t *app_describe(const struct app *app, const char *base);

handler_fn app_get, app_installation_get, app_token_create;
/* Which keys may sign the App's JWTs from now on; installation tokens stay good. */
handler_fn app_keys_put;

#endif
