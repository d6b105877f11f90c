#include "../base/clock.h"
#include "../base/log.h"
#include "../io/topic_writer.h"
#include "daemon_private.h"

#define MISSING_GRACE_MS 10000
#define AGAIN_MS         500
#define ASK_MS           2000
#define REPORT_MS        30000

/* A start that gets nowhere says why, at once and then now and then. */
static void log_waiting(const struct role_ctx *r, const struct why *why, int64_t *reported_ms,
                        int64_t now_ms)
{
    if (*reported_ms && now_ms - *reported_ms < REPORT_MS)
        return;
    *reported_ms = now_ms;
    log_warn("topics_awaited", LOG_STR("role", str_of(r->role->name)),
             LOG_STR("error", str_of(why->text)));
}

enum err role_wait_topics(struct role_ctx *r, struct topic_writer *writer,
                          const char *const *topics, size_t n, struct why *why)
{
    int64_t give_up_ms =
        0; /* counted from the first time that the brokers answered without a topic */
    int64_t reported_ms = 0;

    while (!role_stopping(r)) {
        enum err err = topic_writer_check(writer, topics, n, ASK_MS, why);
        int64_t now_ms = clock_mono_ms();
        if (!err)
            return OK;
        if (err == ERR_STOP && give_up_ms == 0)
            give_up_ms = now_ms + MISSING_GRACE_MS;
        if (err != ERR_RETRY && (err != ERR_STOP || now_ms >= give_up_ms))
            return err;
        role_alive(r);
        role_ready(r, why->text);
        log_waiting(r, why, &reported_ms, now_ms);
        wake_reset(role_wake(r));
        if (!role_stopping(r))
            wake_wait(role_wake(r), AGAIN_MS);
    }
    return OK;
}
