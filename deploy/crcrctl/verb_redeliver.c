#include <getopt.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "redeliver.h"

#define DAY_MS    (24 * 3600 * 1000LL)
#define SINCE_MAX (30 * DAY_MS)
#define RATE      5 /* requests a second */
#define CHECK_MS  5000

struct arguments {
    int64_t since_ms; /* how long ago */
    int64_t every_ms; /* 0: once */
    int rate;
    bool dry_run, all;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "since", required_argument, NULL, 's' }, { "every", required_argument, NULL, 'e' },
        { "rate", required_argument, NULL, 'r' },  { "dry-run", no_argument, NULL, 'n' },
        { "all", no_argument, NULL, 'a' },         { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .since_ms = 3 * DAY_MS, .rate = RATE };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            code = ctl_duration(ctl, "--since", optarg, &ret->since_ms);
        else if (option == 'e')
            code = ctl_duration(ctl, "--every", optarg, &ret->every_ms);
        else if (option == 'r')
            code = ctl_rate(ctl, optarg, &ret->rate);
        else if (option == 'n')
            ret->dry_run = true;
        else if (option == 'a')
            ret->all = true;
        else
            code = ctl_usage(ctl, false);
    }
    if (code == CTL_OK && ret->since_ms > SINCE_MAX)
        code = ctl_bad(ctl, "--since", "longer than 30d", "at most 30d; GitHub keeps 3 days");
    if (code == CTL_OK && optind != argc)
        code = ctl_usage(ctl, false);
    return code;
}

static void tell(const struct deliveries *found, bool dry_run)
{
    struct buf text;

    buf_init(&text, 4096);
    deliveries_sum(found, dry_run, &text);
    printf("%.*s\n", STR_ARG(buf_str(&text)));
    fflush(stdout);
    buf_clear(&text);
}

struct ended {
    enum err err;
    size_t failed; /* payloads */
};

/* One round, told in one line. */
static int once(struct redeliver *r, struct ended *ended)
{
    struct deliveries found;
    struct why why;
    int code = CTL_OK;

    deliveries_init(&found);
    enum err err = redeliver_round(r, &found, &why);
    tell(&found, r->dry_run);
    *ended = (struct ended){ err, deliveries_count(&found, DELIVERY_FAILED) };
    if (err && ctl_stopped())
        fprintf(stderr, "crcrctl %s: stopped before the end; run it again to go on\n",
                r->ctl->verb);
    else if (err)
        code = ctl_fail(r->ctl, err, &why);
    else if (ended->failed)
        code = CTL_PROBLEM;
    if (err && code == CTL_OK)
        code = CTL_PROBLEM;
    deliveries_clear(&found);
    return code;
}

/* Until a signal, or until Kafka takes nothing more from this process: another may do better. */
static int again_and_again(struct redeliver *r, const struct arguments *arguments)
{
    struct redeliver_loop loop = { .look_ms = arguments->since_ms,
                                   .every_ms = arguments->every_ms };
    struct ended ended;
    struct why why;

    do {
        r->since_ms = redeliver_loop_begin(&loop, clock_wall_ms());
        (void)once(r, &ended);
        if (r->writer && topic_writer_fatal(r->writer, &why))
            return ctl_fail(r->ctl, ERR_STOP, &why);
    } while (ctl_wait(redeliver_loop_end(&loop, ended.err, ended.failed)));
    return CTL_OK;
}

/* Configuration first: what is missing there is told before anybody is asked. */
static int set_up(struct redeliver *r)
{
    const char *events = r->ctl->topics.name[TOPIC_EVENTS];
    const struct topic_writer_options options = { .kafka = r->ctl->kafka };
    struct why why;
    enum err err = app_api_new(&r->api, r->ctl, &why);

    if (err) {
        ctl_fail(r->ctl, err, &why);
        return CTL_USAGE;
    }
    if (r->dry_run)
        return CTL_OK;
    err = topic_writer_new(&r->writer, &options, &why);
    if (!err)
        err = topic_writer_check(r->writer, &events, 1, CHECK_MS, &why);
    return err ? ctl_fail(r->ctl, err, &why) : CTL_OK;
}

int verb_redeliver(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct redeliver r = { .ctl = ctl };
    struct ended ended;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    r.dry_run = arguments.dry_run;
    r.all = arguments.all;
    r.since_ms = clock_wall_ms() - arguments.since_ms;
    r.rules = (struct event_rules){
        .upstream_repo = str_of(config_text(ctl->config, "UPSTREAM_REPO")),
        .push_refs = str_of(config_text(ctl->config, "CRCR_PUSH_REFS")),
    };
    pace_init(&r.pace, arguments.rate);
    ctl_catch_signals();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    code = set_up(&r);
    if (code == CTL_OK)
        code = arguments.every_ms ? again_and_again(&r, &arguments) : once(&r, &ended);
    topic_writer_free(r.writer);
    app_api_free(r.api);
    return code;
}
