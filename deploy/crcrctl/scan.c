#include "scan.h"

#include <stdio.h>

#define WAIT_MS  500
#define STALL_MS 30000

/* Nothing came in time. True when the scan goes on. */
static bool idle(const struct scan *s, struct topic_follower *follower, bool *reported)
{
    bool all = topic_follower_caught_up(follower);
    struct why why;
    if (s->follow && all && !*reported)
        *reported = fputs("crcrctl: all read so far; following, Ctrl-C ends it\n", stderr) >= 0;
    if (s->follow && topic_follower_lost(follower, &why))
        fprintf(stderr, "crcrctl: %s; waiting for it\n", why.text);
    return !fflush(stdout) && (s->follow || !all);
}

static enum err read_all(struct scan *s, const struct ctl *ctl, struct topic_follower *follower,
                         scan_fn *found, void *opaque, struct why *why)
{
    struct topic_position first;
    bool reported = false;
    enum err err = OK;
    while (!ctl_stopped()) {
        const struct record *record = topic_follower_next(follower, WAIT_MS);
        if (topic_follower_stalled(follower, why)) {
            err = why_prefix(why, ERR_RETRY, "run this again");
            break;
        }
        if (record) {
            s->read++;
            if (!found(opaque, record) || (!s->follow && topic_follower_caught_up(follower)))
                break; /* what came after the start is not waited for: it may never stop coming */
            if (!s->quiet)
                progress_show(ctl, "reading … %zu records", s->read);
        } else if (!idle(s, follower, &reported)) {
            break;
        }
        if (s->all_read && topic_follower_caught_up(follower)) {
            s->all_read(opaque);
            s->all_read = NULL;
        }
        size_t n = topic_follower_behind(follower, STALL_MS, &first);
        if (!n) /* others may go on, and new records come: that ends nothing */
            continue;
        err = why_set(
            why, ERR_RETRY,
            "Kafka at %s does not answer for %s [%d]%s, of which not all was read: is its "
            "leader running? Run this again",
            ctl->kafka.brokers, first.topic, (int)first.partition, n > 1 ? " and others" : "");
        break;
    }
    progress_end();
    return err;
}

enum err scan_run(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why)
{
    const char *names[TOPIC_COUNT];
    int64_t from[TOPIC_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        if (s->topics & SCAN(i)) {
            names[n] = ctl->topics.name[i];
            from[n++] = s->from_ms;
        }
    const struct topic_follower_options options = {
        .kafka = ctl->kafka, .topics = names, .n_topics = n, .from = from
    };
    struct topic_follower *follower = NULL;
    enum err err = topic_follower_start(&follower, &options, why);
    if (!err) {
        ctl_catch_signals();
        err = read_all(s, ctl, follower, found, opaque, why);
    }
    topic_follower_free(follower);
    return err;
}

enum err scan_all(struct scan *s, const struct ctl *ctl, scan_fn *found, void *opaque,
                  struct why *why)
{
    enum err err = scan_run(s, ctl, found, opaque, why);
    if (!err && ctl_stopped() && !s->follow)
        return why_set(why, ERR_REFUSE, "interrupted: not all was read");
    return err;
}
