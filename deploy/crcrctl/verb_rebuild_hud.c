#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/io/topic_span.h"
#include "../../common/view/epoch.h"
#include "ctl.h"
#include "progress.h"

#define ASK_MS     200
#define TIMEOUT_MS (30 * 60000LL)
/* A reporter looks at the epoch every second; another takes over when a lease ran out. */
#define NOBODY_MS  20000

struct arguments {
    bool wait, status, force;
    int64_t timeout_ms;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "wait", no_argument, NULL, 'w' },
        { "status", no_argument, NULL, 's' },
        { "force", no_argument, NULL, 'f' },
        { "timeout", required_argument, NULL, 't' },
        { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .timeout_ms = TIMEOUT_MS };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'w')
            ret->wait = true;
        else if (option == 's')
            ret->status = true;
        else if (option == 'f')
            ret->force = true;
        else if (option == 't')
            code = ctl_duration(ctl, "--timeout", optarg, &ret->timeout_ms);
        else
            code = ctl_usage(ctl, false);
    }
    return code == CTL_OK && optind != argc ? ctl_usage(ctl, false) : code;
}

static bool is_running(const struct view_rebuild *rebuild)
{
    return str_is(str_of(rebuild->state), "running");
}

/* ---- following ------------------------------------------------------------------------------ */

struct following {
    struct ctl *ctl;
    struct redis *redis;
    struct progress progress;
    int64_t deadline_ms, nobody_ms; /* monotonic */
    bool told_nobody, told_away;
};

static void show(struct following *f, const struct view_rebuild *rebuild)
{
    int64_t now = clock_mono_ms();

    if (is_running(rebuild)) {
        f->nobody_ms = now + NOBODY_MS;
        progress_show(&f->progress, "rebuilding … %s, %" PRId64 " of %" PRId64 " records",
                      rebuild->phase, rebuild->done, rebuild->total);
    } else if (now >= f->nobody_ms && !f->told_nobody) {
        progress_end();
        fprintf(stderr,
                "crcrctl %s: nobody rebuilds it yet: is crcr-reporter running, with role fold?\n",
                f->ctl->verb);
        f->told_nobody = true;
    }
}

static int ended(const struct following *f, const struct view_rebuild *rebuild)
{
    if (rebuild->whole) {
        printf("the view is whole: %" PRId64 " records were read to make it so\n", rebuild->done);
        return CTL_OK;
    }
    fprintf(
        stderr,
        "crcrctl %s: not whole yet (%s, %" PRId64 " of %" PRId64
        " records); it goes on without this program; `crcrctl rebuild-hud --status` looks again\n",
        f->ctl->verb, is_running(rebuild) ? rebuild->phase : "nobody rebuilds it", rebuild->done,
        rebuild->total);
    return CTL_PROBLEM;
}

static void tell_away(struct following *f, const struct why *why)
{
    if (f->told_away)
        return;
    progress_end();
    fprintf(stderr, "crcrctl %s: %s; waiting for it\n", f->ctl->verb, why->text);
    f->told_away = true;
}

/* Looks at least once. Redis may be away for a while in between. */
static int follow(struct following *f)
{
    struct view_rebuild rebuild = { .whole = false };
    struct why why;
    enum err err = OK;

    progress_init(&f->progress, f->ctl->verb);
    f->nobody_ms = clock_mono_ms() + NOBODY_MS;
    do {
        err = view_rebuild_get(f->redis, &rebuild, &why);
        if (err == OK && rebuild.whole)
            break;
        if (err == OK)
            show(f, &rebuild);
        else if (clock_mono_ms() < f->deadline_ms)
            tell_away(f, &why);
    } while (clock_mono_ms() < f->deadline_ms && ctl_wait(ASK_MS));
    progress_end();
    return err == OK ? ended(f, &rebuild) : ctl_fail(f->ctl, err, &why);
}

/* ---- dropping ------------------------------------------------------------------------------- */

/* What would be read: with one partition away nothing is rebuilt, and nothing shown. */
static enum err can_be_rebuilt(const struct ctl *ctl, struct why *why)
{
    const struct topic_span_part parts[] = { { ctl->topics.name[TOPIC_DISPATCHES], 0 },
                                             { ctl->topics.name[TOPIC_RESULTS], 0 },
                                             { ctl->topics.name[TOPIC_EVENTS], 0 },
                                             { ctl->topics.name[TOPIC_CALLBACKS], 0 } };
    struct topic_span *span;
    enum err err = topic_span_new(&span, &ctl->kafka, parts, sizeof(parts) / sizeof(*parts), why);

    if (err != OK)
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

    if (err == OK && !before.whole && is_running(&before)) {
        printf("a rebuild is under way already: %s, %" PRId64 " of %" PRId64 " records\n",
               before.phase, before.done, before.total);
        return CTL_OK;
    }
    if (err == OK && before.whole && !force && ctl->kafka.brokers && *ctl->kafka.brokers)
        err = can_be_rebuilt(ctl, &why);
    if (err == OK)
        err = view_epoch_drop(redis, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    printf("the view will be rebuilt from the topics; dispatching goes on meanwhile\n");
    return CTL_OK;
}

int verb_rebuild_hud(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct redis *redis;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    const struct redis_options options = ctl_redis(ctl);
    if (!options.endpoint)
        return ctl_bad(ctl, "REDIS_ENDPOINT", "", "the host:port of the relay's Redis");
    enum err err = redis_new(&redis, &options, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    ctl_catch_signals();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!arguments.status)
        code = drop(ctl, redis, arguments.force);
    if (code == CTL_OK && (arguments.wait || arguments.status)) {
        struct following following = { .ctl = ctl, .redis = redis };
        if (arguments.wait)
            following.deadline_ms = clock_mono_ms() + arguments.timeout_ms;
        code = follow(&following);
    }
    redis_free(redis);
    return code;
}
