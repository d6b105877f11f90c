#include "../base/clock.h"
#include "../base/log.h"
#include "../io/http_server.h"
#include "daemon_private.h"

#define TURN_MS 200

/* Then there is nothing to wait for: the sooner it is started again, the better. */
static bool one_failed(const struct daemon_ctx *daemon)
{
    for (size_t i = 0; i < daemon->n_roles; i++)
        if (atomic_load(&daemon->roles[i].failed))
            return true;
    return false;
}

void role_leave(struct role_ctx *r, struct http_server *server, int64_t delay_s)
{
    if (one_failed(r->daemon))
        delay_s = 0;
    int64_t until_ms = clock_mono_ms() + delay_s * 1000;
    http_server_last_requests(server);
    if (delay_s > 0)
        log_info("leaving", LOG_STR("role", str_of(r->role->name)),
                 LOG_INT("still_taking_s", delay_s));
    while (clock_mono_ms() < until_ms) {
        role_alive(r);
        wake_reset(role_wake(r));
        wake_wait(role_wake(r), TURN_MS);
    }
    http_server_quiesce(server);
}
