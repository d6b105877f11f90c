#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/io/topic_admin.h"
#include "out.h"
#include "verbs.h"

#define TIMEOUT_MS 5000
#define WATCH_MS   2000

/* JSON is always by partition; for people one line a topic unless they ask for more. */
static enum err show(const struct ctl *ctl, const struct args *args, struct topic_admin *admin,
                     enum group id, struct why *why)
{
    const char *group = ctl->topics.group[id], *topics[GROUP_TOPICS_MAX];
    struct partition_lag *lags;
    int64_t sum = 0;
    int partitions = 0;
    size_t n, n_topics;
    int64_t now_ms = clock_wall_ms();
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
            put_json(NULL,
                     "{at:%jd group:%s topic:%s partition:%d committed:%" PRId64 " end:%" PRId64
                     " lag:%" PRId64 "}",
                     (intmax_t)now_ms, group, p->topic, (int)p->partition, p->committed, p->end,
                     p->lag);
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

/* Where a leader is unavailable the others are shown; two failures in a row are Kafka's. */
static int show_all(const struct ctl *ctl, const struct args *args, struct topic_admin *admin,
                    const bool chosen[GROUP_COUNT])
{
    struct why why;
    int code = CTL_OK;
    if (args->watch && !args->json)
        fputs(isatty(STDOUT_FILENO) ? "\033[H\033[J" : "\n", stdout);
    for (size_t i = 0, failed = 0; failed < 2 && i < GROUP_COUNT; i++) {
        if (args->n_names && !chosen[i])
            continue;
        enum err err = show(ctl, args, admin, (enum group)i, &why);
        failed = !err ? 0 : failed + 1;
        if (err)
            code = ctl_fail(ctl, err, &why);
    }
    fflush(stdout);
    return code;
}

int verb_lag(struct ctl *ctl, const struct args *args)
{
    bool chosen[GROUP_COUNT] = { false };
    struct topic_admin *admin;
    struct why why;
    int code;
    for (size_t i = 0; i < args->n_names; i++)
        chosen[topics_find_group(&ctl->topics, str_of(args->names[i]))] = true;
    enum err err = topic_admin_new(&admin, &ctl->kafka, TIMEOUT_MS, &why);
    if (err)
        return ctl_fail(ctl, err, &why);
    if (args->watch)
        ctl_catch_signals();
    do
        code = show_all(ctl, args, admin, chosen);
    while (args->watch && !ferror(stdout) && ctl_wait(WATCH_MS));
    topic_admin_free(admin);
    return code;
}
