#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/crypto/hmac.h"
#include "../../common/io/topic_writer.h"
#include "../../common/model/ids.h"
#include "progress.h"
#include "replay.h"
#include "scan.h"
#include "summary.h"

#define LINE_MAX (64u << 10)
#define CHECK_MS 5000

struct arguments {
    struct replay_filter filter;
    enum topic topic; /* TOPIC_COUNT: not given */
    char id[DELIVERY_MAX + 1];
    bool again, yes, dry_run, resumed;
    int rate;
};

struct replaying {
    const struct ctl *ctl;
    const struct arguments *arguments;
    struct replay *replay;
    struct topic_writer *writer; /* NULL in a dry run */
    struct pace pace;
    struct progress progress;
    size_t todo, done;
    enum err err;
    struct why why;
};

/* ---- arguments ------------------------------------------------------------------------------ */

static int take_option(const struct ctl *ctl, struct arguments *to, int option)
{
    switch (option) {
    case 't':
        if (strcmp(optarg, "events") && strcmp(optarg, "callbacks"))
            return ctl_bad(ctl, "--topic", optarg, "events or callbacks");
        to->topic = *optarg == 'e' ? TOPIC_EVENTS : TOPIC_CALLBACKS;
        return CTL_OK;
    case 'd':
        to->filter.delivery = str_of(optarg);
        return CTL_OK;
    case 'p':
        return ctl_pr(ctl, optarg, &to->filter.pr);
    case 's':
        return ctl_time(ctl, "--since", optarg, &to->filter.since_ms);
    case 'u':
        return ctl_time(ctl, "--until", optarg, &to->filter.until_ms);
    case 'R':
        return ctl_rate(ctl, optarg, &to->rate);
    case 'i':
        if (!delivery_valid(str_of(optarg)) || !str_copy(to->id, sizeof(to->id), str_of(optarg)))
            return ctl_bad(ctl, "--resume", optarg, "the id that the replay printed");
        to->resumed = true;
        return CTL_OK;
    case 'a':
        to->again = true;
        return CTL_OK;
    case 'y':
        to->yes = true;
        return CTL_OK;
    case 'n':
        to->dry_run = true;
        return CTL_OK;
    default:
        return ctl_usage(ctl, false);
    }
}

static int check(const struct ctl *ctl, const struct arguments *a)
{
    const struct replay_filter *f = &a->filter;

    if (a->topic == TOPIC_COUNT)
        return ctl_bad(ctl, "--topic", "", "events or callbacks");
    if (!f->delivery.len && !f->pr && !f->since_ms) {
        fprintf(stderr, "crcrctl %s: say which: --delivery, --pr, or --since (7d: all)\n",
                ctl->verb);
        return CTL_USAGE;
    }
    if (f->until_ms <= f->since_ms)
        return ctl_bad(ctl, "--until", "before --since", "a later time");
    if (a->again && a->topic != TOPIC_EVENTS)
        return ctl_bad(ctl, "--again", "callbacks", "events: only they are dispatched");
    return CTL_OK;
}

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "topic", required_argument, NULL, 't' },
        { "delivery", required_argument, NULL, 'd' },
        { "pr", required_argument, NULL, 'p' },
        { "since", required_argument, NULL, 's' },
        { "until", required_argument, NULL, 'u' },
        { "rate", required_argument, NULL, 'R' },
        { "resume", required_argument, NULL, 'i' },
        { "again", no_argument, NULL, 'a' },
        { "yes", no_argument, NULL, 'y' },
        { "dry-run", no_argument, NULL, 'n' },
        { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .topic = TOPIC_COUNT, .filter.until_ms = clock_wall_ms() + 1 };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        code = take_option(ctl, ret, option);
    if (code == CTL_OK && optind != argc)
        code = ctl_usage(ctl, false);
    if (code == CTL_OK)
        code = check(ctl, ret);
    if (code == CTL_OK && !*ret->id)
        random_hex(ret->id, 4);
    return code;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void begin(const struct replaying *r, struct scan *scan)
{
    const struct arguments *a = r->arguments;

    *scan = (struct scan){ .from = FOLLOW_BEGINNING };
    scan_add(scan, r->ctl, a->topic);
    if (a->filter.since_ms)
        scan_from(scan, a->filter.since_ms);
}

static bool on_first_pass(void *opaque, const struct record *record)
{
    replay_add(opaque, record);
    return true;
}

/* True when the person at the terminal, or --yes, says so. */
static bool is_confirmed(const struct replaying *r)
{
    const struct arguments *a = r->arguments;
    char answer[16] = "";

    if (!a->again || a->dry_run || !r->todo)
        return true;
    fprintf(stderr,
            "crcrctl %s: %zu events will be dispatched to every downstream AGAIN, whatever was "
            "sent before and however old they are.\n",
            r->ctl->verb, r->todo);
    if (a->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        fprintf(stderr, "crcrctl %s: --yes confirms that\n", r->ctl->verb);
        return false;
    }
    fputs("Go on? [yes/no] ", stderr);
    return fgets(answer, sizeof(answer), stdin) && str_is(str_trim(str_of(answer)), "yes");
}

/* ---- writing -------------------------------------------------------------------------------- */

static void print(const struct replaying *r, const struct record *record)
{
    struct summary s;
    struct buf line;

    summary_of(&s, &r->ctl->topics, record);
    buf_init(&line, LINE_MAX);
    summary_line(&line, &s, SUMMARY_DATE | SUMMARY_DELIVERY);
    progress_end();
    printf("would replay %.*s\n", STR_ARG(buf_str(&line)));
    buf_clear(&line);
}

static enum err write_again(struct replaying *r, const struct record *record)
{
    const struct arguments *a = r->arguments;
    struct headers headers;

    replay_headers(record, str_of(a->id), a->topic == TOPIC_EVENTS, a->again, &headers);
    return topic_writer_put_wait(r->writer, r->ctl->topics.name[a->topic], record->key,
                                 record->value, &headers, NULL, &r->why);
}

static bool on_second_pass(void *opaque, const struct record *record)
{
    struct replaying *r = opaque;

    if (!replay_take(r->replay, record))
        return true;
    if (r->writer && !pace_wait(&r->pace))
        return false;
    if (r->writer)
        r->err = write_again(r, record);
    else
        print(r, record);
    r->done += r->err == OK;
    progress_show(&r->progress, "replayed … %zu of %zu", r->done, r->todo);
    return r->err == OK && r->done < r->todo;
}

/* How the same replay is gone on with: with moments in place of "2h ago". */
static void print_resume(const struct replaying *r)
{
    const struct replay_filter *f = &r->arguments->filter;
    char since[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE];

    fprintf(stderr, "crcrctl replay --resume %s --topic %s", r->arguments->id,
            topic_base_name(r->arguments->topic));
    if (f->delivery.len)
        fprintf(stderr, " --delivery %.*s", STR_ARG(f->delivery));
    if (f->pr)
        fprintf(stderr, " --pr %lld", (long long)f->pr);
    clock_format(f->since_ms, since);
    clock_format(f->until_ms, until);
    if (f->since_ms)
        fprintf(stderr, " --since %s", since);
    fprintf(stderr, " --until %s", until);
    if (r->arguments->rate)
        fprintf(stderr, " --rate %d", r->arguments->rate);
    fprintf(stderr, "%s\n", r->arguments->again ? " --again" : "");
}

/* The records are read again: more may be chosen than fit into memory. */
static void run(struct replaying *r)
{
    const struct topic_writer_options options = { .kafka = r->ctl->kafka };
    const char *topic = r->ctl->topics.name[r->arguments->topic];
    struct scan scan;

    if (!r->arguments->dry_run) {
        r->err = topic_writer_new(&r->writer, &options, &r->why);
        if (r->err == OK)
            r->err = topic_writer_check(r->writer, &topic, 1, CHECK_MS, &r->why);
        if (r->err != OK)
            return;
    }
    begin(r, &scan);
    scan.quiet = true;
    if (r->writer) {
        fputs("should this be ended, the same goes on with: ", stderr);
        print_resume(r);
    }
    pace_init(&r->pace, r->arguments->rate);
    progress_init(&r->progress, r->ctl->verb);
    enum err err = scan_run(&scan, r->ctl, on_second_pass, r, &r->why);
    progress_end();
    if (r->err == OK)
        r->err = err;
}

static int tell(const struct replaying *r, size_t before)
{
    const struct arguments *a = r->arguments;
    size_t left = r->todo - r->done;

    if (a->dry_run)
        printf("%zu would be replayed, %zu replayed before; nothing was written\n", r->done,
               before);
    else
        printf("%zu replayed as %s%s, %zu before\n", r->done, a->again ? "again " : "", a->id,
               before);
    if (r->err != OK)
        (void)ctl_fail(r->ctl, r->err, &r->why);
    if (left && a->dry_run) {
        fprintf(stderr, "crcrctl %s: %zu are left\n", r->ctl->verb, left);
    } else if (left) {
        fprintf(stderr, "crcrctl %s: %zu are left; go on with: ", r->ctl->verb, left);
        print_resume(r);
    }
    if (!r->todo && !before)
        fprintf(stderr, "crcrctl %s: nothing like that is in %s\n", r->ctl->verb,
                r->ctl->topics.name[a->topic]);
    if (r->err == ERR_RETRY || r->err == ERR_UNKNOWN)
        return CTL_UNREACHABLE;
    return r->err != OK || left || (!r->todo && !before) ? CTL_PROBLEM : CTL_OK;
}

static int replay(struct replaying *r)
{
    struct scan scan;
    size_t before;

    begin(r, &scan);
    enum err err = scan_run(&scan, r->ctl, on_first_pass, r->replay, &r->why);
    if (err == OK && ctl_stopped())
        err = why_set(&r->why, ERR_REFUSE, "interrupted: not all was read");
    if (err != OK)
        return ctl_fail(r->ctl, err, &r->why);
    r->todo = replay_todo(r->replay, &before);
    if (r->arguments->resumed && !before)
        fprintf(stderr, "crcrctl %s: nothing was replayed as %s before: is that its id?\n",
                r->ctl->verb, r->arguments->id);
    if (!is_confirmed(r))
        return CTL_USAGE;
    if (r->todo)
        run(r);
    return tell(r, before);
}

int verb_replay(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct replaying r = { .ctl = ctl, .arguments = &arguments };
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    r.replay = replay_new(&arguments.filter, str_of(arguments.id), arguments.topic == TOPIC_EVENTS);
    code = replay(&r);
    topic_writer_free(r.writer);
    replay_free(r.replay);
    return code;
}
