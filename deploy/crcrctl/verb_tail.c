#include <getopt.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/io/topic_follower.h"
#include "ctl.h"
#include "summary.h"

#define WAIT_MS  500
#define LINE_MAX (64u << 10)

struct arguments {
    bool follow, json;
    const char *since;
    struct filter filter;
    const char *topics[TOPIC_COUNT]; /* full names */
    size_t n_topics;
};

static const enum topic default_topics[] = { TOPIC_EVENTS, TOPIC_DISPATCHES, TOPIC_CALLBACKS,
                                             TOPIC_DLQ };

static int add_topic(const struct ctl *ctl, struct arguments *to, const char *name)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (strcmp(topic_base_name((enum topic)i), name) && strcmp(ctl->topics.name[i], name))
            continue;
        for (size_t k = 0; k < to->n_topics; k++)
            if (to->topics[k] == ctl->topics.name[i])
                return CTL_OK;
        to->topics[to->n_topics++] = ctl->topics.name[i];
        return CTL_OK;
    }
    return ctl_bad(ctl, "topic", name,
                   "events, dispatch.l1 … dispatch.l4, delay.10s … delay.1h, dispatches, "
                   "callbacks, reconcile, results, allowlist, dlq or all");
}

static int choose_topics(const struct ctl *ctl, struct arguments *to, char **names)
{
    int code = CTL_OK;

    if (!*names)
        for (size_t i = 0; i < sizeof(default_topics) / sizeof(*default_topics); i++)
            to->topics[to->n_topics++] = ctl->topics.name[default_topics[i]];
    for (; code == CTL_OK && *names; names++) {
        if (strcmp(*names, "all")) {
            code = add_topic(ctl, to, *names);
            continue;
        }
        for (to->n_topics = 0; to->n_topics < TOPIC_COUNT; to->n_topics++)
            to->topics[to->n_topics] = ctl->topics.name[to->n_topics];
        return CTL_OK;
    }
    return code;
}

static int parse_option(const struct ctl *ctl, struct arguments *to, int option)
{
    uint64_t number;

    switch (option) {
    case 'f':
        to->follow = true;
        return CTL_OK;
    case 'j':
        to->json = true;
        return CTL_OK;
    case 's':
        to->since = optarg;
        return CTL_OK;
    case 'd':
        to->filter.delivery = str_of(optarg);
        return CTL_OK;
    case 'r':
        to->filter.repo = str_of(optarg);
        return CTL_OK;
    case 'p':
        if (!str_to_u64(str_of(optarg), &number) || number < 1 || number > INT32_MAX)
            return ctl_bad(ctl, "--pr", optarg, "a pull request's number");
        to->filter.pr = (int64_t)number;
        return CTL_OK;
    case 't':
        if (strlen(optarg) != 1 || *optarg < '1' || *optarg > '4')
            return ctl_bad(ctl, "--tier", optarg, "1 to 4");
        to->filter.tier = *optarg - '0';
        return CTL_OK;
    default:
        return ctl_usage(ctl, false);
    }
}

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "follow", no_argument, NULL, 'f' },      { "json", no_argument, NULL, 'j' },
        { "since", required_argument, NULL, 's' }, { "delivery", required_argument, NULL, 'd' },
        { "repo", required_argument, NULL, 'r' },  { "pr", required_argument, NULL, 'p' },
        { "tier", required_argument, NULL, 't' },  { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;

    *ret = (struct arguments){ .follow = false };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "f", options, NULL)) != -1)
        code = parse_option(ctl, ret, option);
    return code == CTL_OK ? choose_topics(ctl, ret, argv + optind) : code;
}

/* Where to start: what one looks for by name may have come already. */
static int start(const struct ctl *ctl, const struct arguments *arguments,
                 struct topic_follower_options *to)
{
    bool named = arguments->filter.delivery.len || arguments->filter.pr;

    to->from = arguments->follow && !named ? FOLLOW_END : FOLLOW_BEGINNING;
    if (!arguments->since)
        return CTL_OK;
    to->from = FOLLOW_TIME;
    if (ctl_since(arguments->since, clock_wall_ms(), &to->from_ms))
        return CTL_OK;
    return ctl_bad(ctl, "--since", arguments->since, "10m, 2h, 3d or 2026-11-21T03:20:00Z");
}

static void print(const struct ctl *ctl, const struct arguments *arguments,
                  const struct record *record, bool color)
{
    struct summary s;
    struct buf line;

    summary_of(&s, &ctl->topics, record);
    if (!filter_matches(&arguments->filter, &s))
        return;
    buf_init(&line, LINE_MAX);
    if (arguments->json)
        summary_json(&line, &s);
    else
        summary_line(&line, &s, arguments->filter.delivery.len == 0, color);
    printf("%.*s\n", STR_ARG(buf_str(&line)));
    buf_clear(&line);
}

int verb_tail(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct topic_follower *follower;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    struct topic_follower_options options = { .kafka = ctl->kafka,
                                              .topics = arguments.topics,
                                              .n_topics = arguments.n_topics };
    code = start(ctl, &arguments, &options);
    if (code != CTL_OK)
        return code;
    enum err err = topic_follower_new(&follower, &options, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    ctl_catch_signals();
    bool color = ctl_color(stdout);
    bool told = !arguments.follow;
    setvbuf(stdout, NULL, arguments.follow ? _IOLBF : _IOFBF, BUFSIZ);
    while (!ctl_stopped() && !ferror(stdout)) {
        const struct record *record = topic_follower_next(follower, WAIT_MS);
        if (record)
            print(ctl, &arguments, record, color);
        else if (!told && topic_follower_caught_up(follower))
            told = fputs("crcrctl: all read so far; following, Ctrl-C ends it\n", stderr) >= 0;
        else if (fflush(stdout) || (!arguments.follow && topic_follower_caught_up(follower)))
            break;
    }
    topic_follower_free(follower);
    return CTL_OK;
}
