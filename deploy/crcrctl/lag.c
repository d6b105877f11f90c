#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/io/topic_admin.h"
#include "verbs.h"

#define TIMEOUT_MS 5000

/* JSON is always by partition; for people one line a topic unless they ask for more. */
static enum err show(const struct ctl *ctl, const struct args *args, struct topic_admin *admin,
                     enum group id, struct why *why)
{
    const char *group = ctl->topics.group[id], *topics[GROUP_TOPICS_MAX];
    struct partition_lag *lags;
    int64_t sum = 0;
    int partitions = 0;
    size_t n, n_topics;
    const enum topic *reads = topics_of_group(id, &n_topics);
    for (size_t i = 0; i < n_topics; i++)
        topics[i] = ctl->topics.name[reads[i]];
    enum err err = topic_admin_lag(admin, &group, 1, topics, n_topics, &lags, &n, why);
    if (err)
        return why_prefix(why, err, "%s", group);
    for (size_t i = 0; i < n; i++) {
        const struct partition_lag *p = &lags[i];
        sum += p->lag;
        partitions++;
        if (args->json) {
            printf("{\"group\":\"%s\",\"topic\":\"%s\",\"partition\":%d,\"committed\":%" PRId64
                   ",\"end\":%" PRId64 ",\"lag\":%" PRId64 "}\n",
                   group, p->topic, (int)p->partition, p->committed, p->end, p->lag);
        } else if (args->partitions) {
            printf("%-15s %-22s [%d]  committed %" PRId64 "  end %" PRId64 "  lag %" PRId64 "\n",
                   group, p->topic, (int)p->partition, p->committed, p->end, p->lag);
        } else if (i + 1 == n || strcmp(p->topic, lags[i + 1].topic) != 0) {
            printf("%-15s %-22s %3d partitions  lag %" PRId64 "\n", group, p->topic, partitions,
                   sum);
            sum = partitions = 0;
        }
    }
    free(lags);
    return OK;
}

int verb_lag(struct ctl *ctl, const struct args *args)
{
    bool chosen[GROUP_COUNT] = { false };
    struct topic_admin *admin;
    struct why why;
    int code = CTL_OK;
    for (size_t i = 0; i < args->n_names; i++) {
        enum group group = topics_find_group(&ctl->topics, str_of(args->names[i]));
        if (group == GROUP_COUNT)
            return ctl_bad(ctl, "group", args->names[i],
                           "crcr-router, crcr-l1 … crcr-l4, crcr-delay, crcr-fold, "
                           "crcr-reconcile, crcr-forward");
        chosen[group] = true;
    }
    enum err err = topic_admin_new(&admin, &ctl->kafka, TIMEOUT_MS, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    /* Where a leader is unavailable the others are shown; two failures in a row are Kafka's. */
    for (size_t i = 0, failed = 0; failed < 2 && i < GROUP_COUNT; i++) {
        if (args->n_names && !chosen[i])
            continue;
        err = show(ctl, args, admin, (enum group)i, &why);
        failed = !err ? 0 : failed + 1;
        if (err)
            code = ctl_fail(ctl, err, &why);
    }
    topic_admin_free(admin);
    return code;
}
