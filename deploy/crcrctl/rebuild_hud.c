#include <inttypes.h>

#include "../../common/base/clock.h"
#include "../../common/view/epoch.h"
#include "audit.h"
#include "out.h"

#define ASK_MS    200
/* A reporter looks at the epoch every second; another takes over when a lease ran out. */
#define NOBODY_MS 20000

static bool is_running(const struct view_rebuild *rebuild)
{
    return str_is(str_of(rebuild->state), "running");
}

static void json_print(const struct view_rebuild *r)
{
    put_json(NULL, "{consistent:%i running:%i phase:%s done:%" PRId64 " total:%" PRId64 "}",
             r->consistent, is_running(r), r->phase, r->done, r->total);
}

/* Until deadline_ms (monotonic); looks at least once. Redis may be unavailable for a while in
 * between.
 */
static int rebuild_follow(struct ctl *ctl, struct redis *redis, int64_t deadline_ms, bool json)
{
    struct view_rebuild rebuild = { .consistent = false };
    struct why why;
    enum err err = OK;
    int64_t nobody_ms = clock_mono_ms() + NOBODY_MS;
    bool said_nobody = false, said_unavailable = false;
    do {
        err = view_rebuild_get(redis, &rebuild, &why);
        if (!err && rebuild.consistent)
            break;
        if (err && clock_mono_ms() < deadline_ms && !said_unavailable) {
            ctl_say(ctl, "%s; waiting for it", why.text);
            said_unavailable = true;
        } else if (!err && is_running(&rebuild)) {
            nobody_ms = clock_mono_ms() + NOBODY_MS;
            progress_show(ctl, "rebuilding … %s, %" PRId64 " of %" PRId64 " records", rebuild.phase,
                          rebuild.done, rebuild.total);
        } else if (!err && clock_mono_ms() >= nobody_ms && !said_nobody) {
            ctl_say(ctl, "nobody rebuilds it yet: is crcr-reporter running, with role fold?");
            said_nobody = true;
        }
    } while (clock_mono_ms() < deadline_ms && ctl_wait(ASK_MS));
    progress_end();
    if (err)
        return ctl_fail(ctl, err, &why);
    if (json)
        json_print(&rebuild);
    else if (rebuild.consistent)
        printf("the view is consistent: %" PRId64 " records were read for that\n", rebuild.done);
    else
        ctl_say(ctl,
                "not consistent yet (%s, %" PRId64 " of %" PRId64 " records); it goes on without "
                "this program; `crcrctl rebuild-hud --status` looks again",
                is_running(&rebuild) ? rebuild.phase : "nobody rebuilds it", rebuild.done,
                rebuild.total);
    return rebuild.consistent ? CTL_OK : CTL_PROBLEM;
}

/* One that is under way is left alone. */
static int drop(struct ctl *ctl, const struct args *args, struct redis *redis)
{
    struct audit audit = { .writer = NULL };
    struct view_rebuild before;
    struct why why;
    enum err err = view_rebuild_get(redis, &before, &why);
    bool runs = !err && !before.consistent && is_running(&before);
    if (!err && !runs)
        err = audit_begin(&audit, ctl, args, &why);
    if (!err && !runs)
        err = view_epoch_drop(redis, &why);
    int code = err ? ctl_fail(ctl, err, &why) : CTL_OK;
    audit_end(&audit, ctl, code, "%s", err ? why.text : "the view's epoch is removed");
    if (err)
        return code;
    if (args->json)
        json_print(runs ? &before : &(struct view_rebuild){ .consistent = false });
    else if (runs)
        printf("a rebuild is under way already: %s, %" PRId64 " of %" PRId64 " records\n",
               before.phase, before.done, before.total);
    else
        printf("the view will be rebuilt from the topics; dispatching goes on meanwhile\n");
    return CTL_OK;
}

int verb_rebuild_hud(struct ctl *ctl, const struct args *args)
{
    struct redis *redis;
    struct why why;
    int code = CTL_OK;
    if (!config_text(ctl->config, "REDIS_ENDPOINT"))
        return ctl_bad(ctl, "REDIS_ENDPOINT", "", "the host:port of the relay's Redis");
    if (!args->status && (code = ctl_needs_kafka(ctl)) != CTL_OK) /* for the topic audit */
        return code;
    enum err err = ctl_redis(ctl, &redis, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    ctl_catch_signals();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!args->status)
        code = drop(ctl, args, redis);
    if (code == CTL_OK && (args->wait || args->status))
        code = rebuild_follow(ctl, redis, args->wait ? clock_mono_ms() + args->timeout_ms : 0,
                              args->json);
    redis_free(redis);
    return code;
}
