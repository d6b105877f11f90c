#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/io/topic_admin.h"
#include "ctl.h"

#define TIMEOUT_MS 5000
#define MAX_TOPICS 5

/* design.md, "The way of the data": who reads what. */
static const struct reads {
    enum topic topics[MAX_TOPICS];
    size_t n;
} reads_of[GROUP_COUNT] = {
    [GROUP_ROUTER] = { { TOPIC_EVENTS }, 1 },
    [GROUP_L1] = { { TOPIC_DISPATCH_L1 }, 1 },
    [GROUP_L2] = { { TOPIC_DISPATCH_L2 }, 1 },
    [GROUP_L3] = { { TOPIC_DISPATCH_L3 }, 1 },
    [GROUP_L4] = { { TOPIC_DISPATCH_L4 }, 1 },
    [GROUP_DELAY] = { { TOPIC_DELAY_10S, TOPIC_DELAY_1M, TOPIC_DELAY_10M, TOPIC_DELAY_1H }, 4 },
    [GROUP_FOLD] = { { TOPIC_CALLBACKS, TOPIC_DISPATCHES, TOPIC_EVENTS }, 3 },
    [GROUP_RECONCILE] = { { TOPIC_RECONCILE }, 1 },
    [GROUP_FORWARD] = { { TOPIC_RESULTS }, 1 },
};

struct arguments {
    bool json, partitions;
    bool chosen[GROUP_COUNT];
};

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "partitions", no_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    *ret = (struct arguments){ .json = false };
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            ret->json = true;
        else if (option == 'p')
            ret->partitions = true;
        else
            return ctl_usage(ctl, false);
    }
    for (int i = optind; i < argc; i++) {
        enum group group = topics_find_group(&ctl->topics, str_of(argv[i]));
        if (group == GROUP_COUNT)
            return ctl_bad(ctl, "group", argv[i],
                           "crcr-router, crcr-l1 … crcr-l4, crcr-delay, "
                           "crcr-fold, crcr-reconcile, crcr-forward");
        ret->chosen[group] = true;
    }
    for (size_t i = 0; optind == argc && i < GROUP_COUNT; i++)
        ret->chosen[i] = true;
    return CTL_OK;
}

static void print_line(const struct arguments *arguments, const char *group, const char *topic,
                       const struct partition_lag *p, int partitions)
{
    if (arguments->json) {
        printf("{\"group\":\"%s\",\"topic\":\"%s\",\"partition\":%d,\"committed\":%" PRId64
               ",\"end\":%" PRId64 ",\"lag\":%" PRId64 "}\n",
               group, topic, (int)p->partition, p->committed, p->end, p->lag);
    } else if (partitions) {
        printf("%-15s %-22s %3d partitions  lag %" PRId64 "\n", group, topic, partitions, p->lag);
    } else {
        printf("%-15s %-22s [%d]  committed %" PRId64 "  end %" PRId64 "  lag %" PRId64 "\n", group,
               topic, (int)p->partition, p->committed, p->end, p->lag);
    }
}

/* JSON is always by partition; for people one line a topic unless they ask for more. */
static void print_group(const struct arguments *arguments, const char *group,
                        const struct partition_lag *lags, size_t n)
{
    struct partition_lag sum = { .lag = 0 };
    int partitions = 0;

    for (size_t i = 0; i < n; i++) {
        if (arguments->json || arguments->partitions) {
            print_line(arguments, group, lags[i].topic, &lags[i], 0);
            continue;
        }
        sum.lag += lags[i].lag;
        partitions++;
        if (i + 1 == n || strcmp(lags[i].topic, lags[i + 1].topic)) {
            print_line(arguments, group, lags[i].topic, &sum, partitions);
            sum.lag = 0;
            partitions = 0;
        }
    }
}

static enum err show(struct ctl *ctl, const struct arguments *arguments, struct topic_admin *admin,
                     enum group group, struct why *why)
{
    const struct reads *reads = &reads_of[group];
    const char *name = ctl->topics.group[group], *topics[MAX_TOPICS];
    struct partition_lag *lags;
    size_t n;

    for (size_t i = 0; i < reads->n; i++)
        topics[i] = ctl->topics.name[reads->topics[i]];
    enum err err = topic_admin_lag(admin, name, topics, reads->n, &lags, &n, why);
    if (err != OK)
        return err;
    print_group(arguments, name, lags, n);
    free(lags);
    return OK;
}

int verb_lag(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct topic_admin *admin;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    if (code != CTL_OK)
        return code;
    enum err err = topic_admin_new(&admin, &ctl->kafka, TIMEOUT_MS, &why);
    if (err != OK)
        return ctl_fail(ctl, err, &why);
    /* Where a leader is away the others are shown; two failures in a row are Kafka's. */
    for (size_t i = 0, failed = 0; failed < 2 && i < GROUP_COUNT; i++) {
        if (!arguments.chosen[i])
            continue;
        err = show(ctl, &arguments, admin, (enum group)i, &why);
        failed = err == OK ? 0 : failed + 1;
        if (err == OK)
            continue;
        (void)why_prefix(&why, err, "%s", ctl->topics.group[i]);
        code = ctl_fail(ctl, err, &why);
    }
    topic_admin_free(admin);
    return code;
}
