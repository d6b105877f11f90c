#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/io/topic_admin.h"
#include "ctl.h"

#define TIMEOUT_MS 5000
#define MAX_TOPICS 5

/* design.md, "The way of the data": who reads what. */
static const struct group {
    const char *name;
    enum topic topics[MAX_TOPICS];
    size_t n;
} groups[] = {
    { "crcr-router", { TOPIC_EVENTS }, 1 },
    { "crcr-l1", { TOPIC_DISPATCH_L1 }, 1 },
    { "crcr-l2", { TOPIC_DISPATCH_L2 }, 1 },
    { "crcr-l3", { TOPIC_DISPATCH_L3 }, 1 },
    { "crcr-l4", { TOPIC_DISPATCH_L4 }, 1 },
    { "crcr-delay", { TOPIC_DELAY_10S, TOPIC_DELAY_1M, TOPIC_DELAY_10M, TOPIC_DELAY_1H }, 4 },
    { "crcr-fold", { TOPIC_CALLBACKS, TOPIC_DISPATCHES, TOPIC_EVENTS }, 3 },
    { "crcr-reconcile", { TOPIC_RECONCILE }, 1 },
    { "crcr-forward", { TOPIC_RESULTS }, 1 },
};
#define N_GROUPS (sizeof(groups) / sizeof(*groups))

struct arguments {
    bool json, partitions;
    char **groups; /* NULL-terminated; none: all */
};

static bool is_group(const char *name)
{
    for (size_t i = 0; i < N_GROUPS; i++)
        if (!strcmp(groups[i].name, name))
            return true;
    return false;
}

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
    for (int i = optind; i < argc; i++)
        if (!is_group(argv[i]))
            return ctl_bad(ctl, "group", argv[i],
                           "crcr-router, crcr-l1 … crcr-l4, crcr-delay, "
                           "crcr-fold, crcr-reconcile, crcr-forward");
    ret->groups = argv + optind;
    return CTL_OK;
}

static bool is_chosen(const struct arguments *arguments, const char *name)
{
    for (char **chosen = arguments->groups; *chosen; chosen++)
        if (!strcmp(*chosen, name))
            return true;
    return !*arguments->groups;
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
                     const struct group *group, struct why *why)
{
    const char *topics[MAX_TOPICS];
    struct partition_lag *lags;
    size_t n;

    for (size_t i = 0; i < group->n; i++)
        topics[i] = ctl->topics.name[group->topics[i]];
    enum err err = topic_admin_lag(admin, group->name, topics, group->n, &lags, &n, why);
    if (err != OK)
        return err;
    print_group(arguments, group->name, lags, n);
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
    for (size_t i = 0; err == OK && i < N_GROUPS; i++)
        if (is_chosen(&arguments, groups[i].name))
            err = show(ctl, &arguments, admin, &groups[i], &why);
    topic_admin_free(admin);
    return err == OK ? CTL_OK : ctl_fail(ctl, err, &why);
}
