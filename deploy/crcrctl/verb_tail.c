#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "progress.h"
#include "scan.h"
#include "summary.h"

#define LINE_MAX (64u << 10)
/* A topic comes partition by partition; without --follow that many lines are put in order of time.
 * More would be memory without end: what is there is told, and the order begins anew. */
#define HELD_MAX 100000

struct line {
    int64_t at_ms;
    size_t n; /* the order of reading, for lines of one millisecond */
    char *text;
};

struct arguments {
    const struct ctl *ctl;
    bool json;
    unsigned shows; /* of enum summary_shows */
    struct filter filter;
    struct scan scan;
    struct line *held;
    size_t n_held, cap_held;
};

static const enum topic default_topics[] = { TOPIC_EVENTS, TOPIC_DISPATCHES, TOPIC_CALLBACKS,
                                             TOPIC_DLQ };

static int add_topic(const struct ctl *ctl, struct arguments *to, const char *name)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (strcmp(topic_base_name((enum topic)i), name) && strcmp(ctl->topics.name[i], name))
            continue;
        scan_add(&to->scan, ctl, (enum topic)i);
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
            scan_add(&to->scan, ctl, default_topics[i]);
    for (; code == CTL_OK && *names; names++) {
        if (strcmp(*names, "all")) {
            code = add_topic(ctl, to, *names);
            continue;
        }
        for (size_t i = 0; i < TOPIC_COUNT; i++)
            scan_add(&to->scan, ctl, (enum topic)i);
        return CTL_OK;
    }
    return code;
}

static int parse_option(const struct ctl *ctl, struct arguments *to, int option)
{
    int64_t from_ms;
    int code;

    switch (option) {
    case 'f':
        to->scan.follow = true;
        return CTL_OK;
    case 'j':
        to->json = true;
        return CTL_OK;
    case 's':
        code = ctl_time(ctl, "--since", optarg, &from_ms);
        if (code == CTL_OK)
            scan_from(&to->scan, from_ms);
        return code;
    case 'd':
        to->filter.delivery = str_of(optarg);
        return CTL_OK;
    case 'r':
        to->filter.repo = str_of(optarg);
        return CTL_OK;
    case 'p':
        return ctl_pr(ctl, optarg, &to->filter.pr);
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

    *ret = (struct arguments){ .ctl = ctl };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "f", options, NULL)) != -1)
        code = parse_option(ctl, ret, option);
    return code == CTL_OK ? choose_topics(ctl, ret, argv + optind) : code;
}

static int by_time(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

static void tell_held(struct arguments *a)
{
    if (a->n_held)
        qsort(a->held, a->n_held, sizeof(*a->held), by_time);
    progress_end();
    for (size_t i = 0; i < a->n_held; i++) {
        puts(a->held[i].text);
        free(a->held[i].text);
    }
    a->n_held = 0;
    fflush(stdout);
}

static void hold(struct arguments *a, int64_t at_ms, struct str text)
{
    if (a->n_held == HELD_MAX)
        tell_held(a);
    if (a->n_held == a->cap_held) {
        a->cap_held = a->cap_held ? 2 * a->cap_held : 256;
        a->held = mem_resize(a->held, a->cap_held, sizeof(*a->held));
    }
    a->held[a->n_held] = (struct line){ at_ms, a->n_held, str_dup(text) };
    a->n_held++;
}

static bool print(void *opaque, const struct record *record)
{
    struct arguments *arguments = opaque;
    struct summary s;
    struct buf line;

    summary_of(&s, &arguments->ctl->topics, record);
    if (!filter_matches(&arguments->filter, &s))
        return true;
    buf_init(&line, LINE_MAX);
    if (arguments->json)
        summary_json(&line, &s);
    else
        summary_line(&line, &s, arguments->shows);
    if (arguments->scan.follow)
        printf("%.*s\n", STR_ARG(buf_str(&line)));
    else
        hold(arguments, s.at_ms, buf_str(&line));
    buf_clear(&line);
    return !ferror(stdout);
}

int verb_tail(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct scan *scan = &arguments.scan;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    /* What one looks for by name may have come already. */
    bool named = arguments.filter.delivery.len || arguments.filter.pr;
    if (scan->from != FOLLOW_TIME && scan->follow && !named)
        scan->from = FOLLOW_END;
    scan->quiet = scan->follow; /* then the lines themselves show it */
    arguments.shows = (scan->follow ? 0 : SUMMARY_DATE) |
                      (arguments.filter.delivery.len ? 0 : SUMMARY_DELIVERY) |
                      (ctl_color(stdout) ? SUMMARY_COLOR : 0);
    setvbuf(stdout, NULL, scan->follow ? _IOLBF : _IOFBF, BUFSIZ);
    enum err err = scan_run(scan, ctl, print, &arguments, &why);
    tell_held(&arguments);
    free(arguments.held);
    if (err == OK && ctl_stopped() && !scan->follow)
        err = why_set(&why, ERR_REFUSE, "interrupted: not all was read");
    return err == OK ? CTL_OK : ctl_fail(ctl, err, &why);
}
