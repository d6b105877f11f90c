#include "../base/clock.h"
#include "daemon_private.h"

/* The admin port is open while start() runs: the name, last, is what tells of it. */
atomic_llong *daemon_watch(struct daemon_ctx *ctx, const char *name)
{
    atomic_store(&ctx->watched_alive_ms, clock_mono_ms());
    atomic_store(&ctx->watched, name);
    return &ctx->watched_alive_ms;
}

enum err watch_check_health(struct daemon_ctx *ctx, struct why *why)
{
    const char *name = atomic_load(&ctx->watched);
    if (!name)
        return OK;
    struct health health;
    health_init(&health, atomic_load(&ctx->watched_alive_ms));
    enum err err = health_check(&health, clock_mono_ms(), why);
    return err ? why_prefix(why, err, "%s", name) : OK;
}
