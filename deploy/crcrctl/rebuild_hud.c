#include <inttypes.h>

#include "../../common/base/clock.h"
#include "../../common/io/topic_span.h"
#include "../../common/view/epoch.h"
#include "verbs.h"

#define ASK_MS    200
/* A reporter looks at the epoch every second; another takes over when a lease ran out. */
#define NOBODY_MS 20000

static bool is_running(const struct view_rebuild *rebuild)
{
    return str_is(str_of(rebuild->state), "running");
}

/* ---- following ------------------------------------------------------------------------------ */

struct following {
    struct ctl *ctl;
    struct redis *redis;
    int64_t deadline_ms, nobody_ms; /* monotonic */
    bool said_nobody, said_unavailable;
};

static void show(struct following *f, const struct view_rebuild *rebuild)
{
    int64_t now = clock_mono_ms();
    if (is_running(rebuild)) {
        f->nobody_ms = now + NOBODY_MS;
        progress_show(f->ctl, "rebuilding … %s, %" PRId64 " of %" PRId64 " records", rebuild->phase,
                      rebuild->done, rebuild->total);
    } else if (now >= f->nobody_ms && !f->said_nobody) {
        ctl_say(f->ctl, "nobody rebuilds it yet: is crcr-reporter running, with role fold?");
        f->said_nobody = true;
    }
}

/* Looks at least once. Redis may be unavailable for a while in between. */
static int follow(struct following *f)
{
    struct view_rebuild rebuild = { .consistent = false };
    struct why why;
    enum err err = OK;
    f->nobody_ms = clock_mono_ms() + NOBODY_MS;
    do {
        err = view_rebuild_get(f->redis, &rebuild, &why);
        if (!err && rebuild.consistent)
            break;
        if (!err) {
            show(f, &rebuild);
        } else if (clock_mono_ms() < f->deadline_ms && !f->said_unavailable) {
            ctl_say(f->ctl, "%s; waiting for it", why.text);
            f->said_unavailable = true;
        }
    } while (clock_mono_ms() < f->deadline_ms && ctl_wait(ASK_MS));
    progress_end();
    if (err)
        return ctl_fail(f->ctl, err, &why);
    if (rebuild.consistent) {
        printf("the view is consistent: %" PRId64 " records were read for that\n", rebuild.done);
        return CTL_OK;
    }
    ctl_say(
        f->ctl,
        "not consistent yet (%s, %" PRId64 " of %" PRId64
        " records); it goes on without this program; `crcrctl rebuild-hud --status` looks again",
        is_running(&rebuild) ? rebuild.phase : "nobody rebuilds it", rebuild.done, rebuild.total);
    return CTL_PROBLEM;
}

/* ---- dropping ------------------------------------------------------------------------------- */

/* What would be read: with one partition unavailable nothing is rebuilt, and nothing shown. */
static enum err can_be_rebuilt(const struct ctl *ctl, struct why *why)
{
    const struct topic_span_part parts[] = { { ctl->topics.name[TOPIC_DISPATCHES], 0 },
                                             { ctl->topics.name[TOPIC_RESULTS], 0 },
                                             { ctl->topics.name[TOPIC_EVENTS], 0 },
                                             { ctl->topics.name[TOPIC_CALLBACKS], 0 } };
    struct topic_span *span;
    enum err err = topic_span_new(&span, &ctl->kafka, parts, sizeof(parts) / sizeof(*parts), why);
    if (err)
        return why_prefix(why, err, "the view is left as it is (--force drops it all the same)");
    topic_span_free(span);
    return OK;
}

/* One that is under way is left alone. */
static int drop(struct ctl *ctl, struct redis *redis, bool force)
{
    struct view_rebuild before;
    struct why why;
    enum err err = view_rebuild_get(redis, &before, &why);
    if (!err && !before.consistent && is_running(&before)) {
        printf("a rebuild is under way already: %s, %" PRId64 " of %" PRId64 " records\n",
               before.phase, before.done, before.total);
        return CTL_OK;
    }
    if (!err && before.consistent && !force && ctl->kafka.brokers && *ctl->kafka.brokers)
        err = can_be_rebuilt(ctl, &why);
    if (!err)
        err = view_epoch_drop(redis, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    printf("the view will be rebuilt from the topics; dispatching goes on meanwhile\n");
    return CTL_OK;
}

int verb_rebuild_hud(struct ctl *ctl, const struct args *args)
{
    const struct redis_options options = ctl_redis(ctl);
    struct following following = { .ctl = ctl };
    struct why why;
    int code = CTL_OK;
    if (!options.endpoint)
        return ctl_bad(ctl, "REDIS_ENDPOINT", "", "the host:port of the relay's Redis");
    enum err err = redis_new(&following.redis, &options, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    ctl_catch_signals();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!args->status)
        code = drop(ctl, following.redis, args->force);
    if (args->wait)
        following.deadline_ms = clock_mono_ms() + args->timeout_ms;
    if (code == CTL_OK && (args->wait || args->status))
        code = follow(&following);
    redis_free(following.redis);
    return code;
}
