#include "app_jwt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/mem.h"

/* iat 60 s back for clocks that differ, exp at most 10 min ahead: GitHub's own advice. */
#define BACK_S   60
#define AHEAD_S  540
#define RENEW_MS (8 * 60000)

void app_jwt_init(struct app_jwt *j, const char *app_id, const struct jwt_key *key)
{
    *j = (struct app_jwt){ .app_id = mem_dup(app_id), .key = key };
}

void app_jwt_clear(struct app_jwt *j)
{
    app_jwt_drop(j);
    free(j->app_id);
    j->app_id = NULL;
}

void app_jwt_drop(struct app_jwt *j)
{
    mem_free_secret(j->text);
    j->text = NULL;
}

enum err app_jwt_get(struct app_jwt *j, const char **ret, struct why *why)
{
    int64_t now_ms = clock_mono_ms(), now_s = clock_wall_ms() / 1000;
    if (!j->text || now_ms - j->signed_ms > RENEW_MS) {
        char claims[256];
        char *jwt = NULL;
        snprintf(claims, sizeof(claims), "{\"iat\":%" PRId64 ",\"exp\":%" PRId64 ",\"iss\":\"%s\"}",
                 now_s - BACK_S, now_s + AHEAD_S, j->app_id);
        enum err err = jwt_sign_rs256(j->key, STR_NONE, str_of(claims), &jwt, why);
        if (err)
            return err;
        app_jwt_drop(j);
        j->text = jwt;
        j->signed_ms = now_ms;
    }
    *ret = j->text;
    return OK;
}
