#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/io/topic_follower.h"
#include "ctl.h"
#include "timeline.h"

#define WAIT_MS     500
#define PROGRESS_MS 200
#define TEXT_MAX    (16u << 20)

struct arguments {
    bool json;
    const char *since;
    struct filter filter;
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "since", required_argument, NULL, 's' },
        { "pr", required_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    uint64_t number;

    *ret = (struct arguments){ .json = false };
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            ret->json = true;
        else if (option == 's')
            ret->since = optarg;
        else if (option != 'p')
            return ctl_usage(ctl, false);
        else if (!str_to_u64(str_of(optarg), &number) || number < 1 || number > INT32_MAX)
            return ctl_bad(ctl, "--pr", optarg, "a pull request's number");
        else
            ret->filter.pr = (int64_t)number;
    }
    if (optind + 1 == argc)
        ret->filter.delivery = str_of(argv[optind]);
    if (optind + 1 < argc || !ret->filter.delivery.len == !ret->filter.pr)
        return ctl_usage(ctl, false);
    return CTL_OK;
}

/* How far the reading is, on a terminal only. */
static void progress(size_t read, size_t found, int64_t *due_ms, bool last)
{
    int64_t now = clock_mono_ms();

    if (!isatty(STDERR_FILENO) || (now < *due_ms && !last))
        return;
    *due_ms = now + PROGRESS_MS;
    if (last)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\rreading … %zu records, %zu of them of this event\033[K", read, found);
    fflush(stderr);
}

static void collect(const struct ctl *ctl, const struct arguments *arguments,
                    struct topic_follower *follower, struct timeline *to)
{
    size_t read = 0;
    int64_t due_ms = 0;

    while (!ctl_stopped()) {
        const struct record *record = topic_follower_next(follower, WAIT_MS);
        struct summary s;
        if (!record && topic_follower_caught_up(follower))
            break;
        if (!record)
            continue;
        summary_of(&s, &ctl->topics, record);
        if (filter_matches(&arguments->filter, &s) && *s.delivery)
            timeline_add(to, &s);
        progress(++read, to->n, &due_ms, false);
    }
    progress(read, to->n, &due_ms, true);
}

static void print(const struct timeline *t, const struct arguments *arguments)
{
    struct buf text;
    int64_t now_ms = clock_wall_ms();

    buf_init(&text, TEXT_MAX);
    for (size_t first = 0, end; first < t->n; first = end) {
        for (end = first + 1;
             end < t->n && !strcmp(t->steps[end].delivery, t->steps[first].delivery);)
            end++;
        if (arguments->json)
            timeline_json(&text, t, first, end, now_ms);
        else
            timeline_print(&text, t, first, end, now_ms, ctl_color(stdout));
        if (!arguments->json && end < t->n)
            buf_putc(&text, '\n');
    }
    printf("%.*s", STR_ARG(buf_str(&text)));
    buf_clear(&text);
}

static int show(const struct ctl *ctl, const struct arguments *arguments, struct timeline *t)
{
    timeline_sort(t);
    if (t->n) {
        print(t, arguments);
        return CTL_OK;
    }
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
    const char *topics[TOPIC_COUNT];
    struct topic_follower *follower;
    struct timeline timeline;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    struct topic_follower_options options = { .kafka = ctl->kafka, .topics = topics };
    if (arguments.since) {
        options.from = FOLLOW_TIME;
        if (!ctl_since(arguments.since, clock_wall_ms(), &options.from_ms))
            return ctl_bad(ctl, "--since", arguments.since, "10m, 2h, 3d or 2026-11-21T03:20:00Z");
    }
    for (size_t i = 0; i < TOPIC_COUNT; i++) /* those two hold nothing of one delivery */
        if (i != TOPIC_ALLOWLIST && i != TOPIC_RECONCILE)
            topics[options.n_topics++] = ctl->topics.name[i];
    enum err err = topic_follower_new(&follower, &options, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    ctl_catch_signals();
    timeline_init(&timeline);
    collect(ctl, &arguments, follower, &timeline);
    topic_follower_free(follower);
    code = show(ctl, &arguments, &timeline);
    timeline_clear(&timeline);
    return code;
}
