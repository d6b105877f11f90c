#include <getopt.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "scan.h"
#include "trace_checks.h"

#define TEXT_MAX (16u << 20)

struct arguments {
    bool json;
    struct filter filter;
    struct scan scan;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "since", required_argument, NULL, 's' },
        { "pr", required_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    int option, code = CTL_OK;
    int64_t from_ms;

    *ret = (struct arguments){ .json = false };
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            ret->json = true;
        else if (option == 'p')
            code = ctl_pr(ctl, optarg, &ret->filter.pr);
        else if (option != 's')
            code = ctl_usage(ctl, false);
        else if ((code = ctl_time(ctl, "--since", optarg, &from_ms)) == CTL_OK)
            scan_from(&ret->scan, from_ms);
    }
    if (code != CTL_OK)
        return code;
    if (optind + 1 == argc)
        ret->filter.delivery = str_of(argv[optind]);
    if (optind + 1 < argc || !ret->filter.delivery.len == !ret->filter.pr)
        return ctl_usage(ctl, false);
    return CTL_OK;
}

/* Every step of the event, as scan_run finds it. */
struct collecting {
    const struct ctl *ctl;
    const struct filter *filter;
    struct timeline *to;
};

static bool collect(void *opaque, const struct record *record)
{
    const struct collecting *c = opaque;
    struct summary s;

    summary_of(&s, &c->ctl->topics, record);
    if (filter_matches(c->filter, &s) && *s.delivery)
        timeline_add(c->to, &s);
    return true;
}

/* One delivery; text is used for it. */
static int print(const struct ctl *ctl, const struct timeline *t, size_t first, size_t end,
                 const struct arguments *arguments, struct buf *text)
{
    struct timeline_checks CLEANUP(timeline_checks_clear) checks;
    int64_t now_ms = clock_wall_ms();
    struct why why;

    trace_checks_read(ctl, str_of(t->steps[first].delivery), &checks);
    buf_reset(text);
    if (arguments->json)
        timeline_json(text, t, first, end, now_ms, &checks);
    else
        timeline_print(text, t, first, end, now_ms, &checks, ctl_color(stdout));
    if (buf_full(text)) {
        enum err err = why_set(&why, ERR_REFUSE,
                               "delivery %s has %zu steps, which is more than can be shown (%u "
                               "MiB); `crcrctl tail` shows them one by one",
                               t->steps[first].delivery, end - first, TEXT_MAX >> 20);
        return ctl_fail(ctl, err, &why);
    }
    printf("%s%.*s", first && !arguments->json ? "\n" : "", STR_ARG(buf_str(text)));
    return CTL_OK;
}

static int print_all(const struct ctl *ctl, const struct timeline *t,
                     const struct arguments *arguments)
{
    struct buf CLEANUP(buf_clear) text;
    int code = CTL_OK;

    buf_init(&text, TEXT_MAX);
    for (size_t first = 0, end; first < t->n; first = end) {
        for (end = first + 1;
             end < t->n && !strcmp(t->steps[end].delivery, t->steps[first].delivery);)
            end++;
        if (print(ctl, t, first, end, arguments, &text) != CTL_OK)
            code = CTL_PROBLEM;
    }
    return code;
}

static int show(const struct ctl *ctl, const struct arguments *arguments, struct timeline *t)
{
    timeline_sort(t);
    if (t->n)
        return print_all(ctl, t, arguments);
    if (arguments->filter.pr)
        fprintf(stderr, "crcrctl %s: nothing of pull request %lld in the topics\n", ctl->verb,
                (long long)arguments->filter.pr);
    else
        fprintf(stderr,
                "crcrctl %s: nothing of delivery %.*s in the topics: it was never accepted, or is "
                "older than they keep\n",
                ctl->verb, STR_ARG(arguments->filter.delivery));
    return CTL_PROBLEM;
}

int verb_trace(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct timeline timeline;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    for (size_t i = 0; i < TOPIC_COUNT; i++) /* those two hold nothing of one delivery */
        if (i != TOPIC_ALLOWLIST && i != TOPIC_RECONCILE)
            scan_add(&arguments.scan, ctl, (enum topic)i);
    timeline_init(&timeline);
    struct collecting collecting = { ctl, &arguments.filter, &timeline };
    enum err err = scan_run(&arguments.scan, ctl, collect, &collecting, &why);
    if (err == OK && ctl_stopped()) /* what was not read would be told as never accepted */
        err = why_set(&why, ERR_REFUSE, "interrupted: not all was read");
    code = err == OK ? show(ctl, &arguments, &timeline) : ctl_fail(ctl, err, &why);
    timeline_clear(&timeline);
    return code;
}
