#include "topics.h"

#include <stdio.h>
#include <string.h>

static const char *const base_names[TOPIC_COUNT] = {
    [TOPIC_EVENTS] = "events",
    [TOPIC_DISPATCH_L1] = "dispatch.l1",
    [TOPIC_DISPATCH_L2] = "dispatch.l2",
    [TOPIC_DISPATCH_L3] = "dispatch.l3",
    [TOPIC_DISPATCH_L4] = "dispatch.l4",
    [TOPIC_DELAY_10S] = "delay.10s",
    [TOPIC_DELAY_1M] = "delay.1m",
    [TOPIC_DELAY_10M] = "delay.10m",
    [TOPIC_DELAY_1H] = "delay.1h",
    [TOPIC_RDELAY_1M] = "rdelay.1m",
    [TOPIC_RDELAY_10M] = "rdelay.10m",
    [TOPIC_RDELAY_1H] = "rdelay.1h",
    [TOPIC_DISPATCHES] = "dispatches",
    [TOPIC_CALLBACKS] = "callbacks",
    [TOPIC_RECONCILE] = "reconcile",
    [TOPIC_RESULTS] = "results",
    [TOPIC_ALLOWLIST] = "allowlist",
    [TOPIC_DLQ] = "dlq",
    [TOPIC_AUDIT] = "audit",
};

#define DEFAULT_STEM "crcr"

static const char *const group_names[GROUP_COUNT] = {
    [GROUP_ROUTER] = "router",   [GROUP_L1] = "l1",
    [GROUP_L2] = "l2",           [GROUP_L3] = "l3",
    [GROUP_L4] = "l4",           [GROUP_DELAY] = "delay",
    [GROUP_FOLD] = "fold",       [GROUP_RECONCILE] = "reconcile",
    [GROUP_FORWARD] = "forward",
};

/* What Kafka takes in a topic name (org.apache.kafka.common.internals.Topic). */
static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/* The dot that parts the prefix from a topic's name becomes the hyphen before a group's and the
 * colon before a Redis key's. */
static void name_the_rest(struct topics *t, const char *prefix)
{
    struct str stem = str_of(prefix);
    if (stem.len && stem.ptr[stem.len - 1] == '.')
        stem.len--;
    if (!stem.len)
        stem = STR_LIT(DEFAULT_STEM);
    for (size_t i = 0; i < GROUP_COUNT; i++)
        snprintf(t->group[i], sizeof(t->group[i]), "%.*s-%s", STR_ARG(stem), group_names[i]);
    snprintf(t->key_prefix, sizeof(t->key_prefix), "%.*s:", STR_ARG(stem));
}

enum err topics_init(struct topics *t, const char *prefix, struct why *why)
{
    size_t longest = strlen("dispatch.l1");
    size_t room = sizeof(t->name[0]) - longest - 1;
    if (strspn(prefix, legal) != strlen(prefix))
        return why_set(why, ERR_REFUSE,
                       "topic prefix \"%s\" has a character that Kafka does not take; accepted are "
                       "letters, digits, dot, underscore and hyphen",
                       prefix);
    if (strlen(prefix) > room)
        return why_set(why, ERR_REFUSE, "topic prefix has %zu characters; at most %zu are accepted",
                       strlen(prefix), room);
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        snprintf(t->name[i], sizeof(t->name[i]), "%s%s", prefix, base_names[i]);
    name_the_rest(t, prefix);
    return OK;
}

const char *topic_base_name(enum topic topic)
{
    return base_names[topic];
}

const enum topic *topics_of_group(enum group group, size_t *n)
{
    static const struct {
        enum topic topics[GROUP_TOPICS_MAX];
        size_t n;
    } reads[GROUP_COUNT] = {
        [GROUP_ROUTER] = { { TOPIC_EVENTS }, 1 },
        [GROUP_L1] = { { TOPIC_DISPATCH_L1 }, 1 },
        [GROUP_L2] = { { TOPIC_DISPATCH_L2 }, 1 },
        [GROUP_L3] = { { TOPIC_DISPATCH_L3 }, 1 },
        [GROUP_L4] = { { TOPIC_DISPATCH_L4 }, 1 },
        [GROUP_DELAY] = { { TOPIC_DELAY_10S, TOPIC_DELAY_1M, TOPIC_DELAY_10M, TOPIC_DELAY_1H,
                            TOPIC_RDELAY_1M, TOPIC_RDELAY_10M, TOPIC_RDELAY_1H },
                          7 },
        [GROUP_FOLD] = { { TOPIC_CALLBACKS, TOPIC_DISPATCHES, TOPIC_EVENTS }, 3 },
        [GROUP_RECONCILE] = { { TOPIC_RECONCILE }, 1 },
        [GROUP_FORWARD] = { { TOPIC_RESULTS }, 1 },
    };
    *n = reads[group].n;
    return reads[group].topics;
}

enum topic topics_find(const struct topics *t, struct str full_name)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        if (str_is(full_name, t->name[i]))
            return (enum topic)i;
    return TOPIC_COUNT;
}

enum group topics_find_group(const struct topics *t, struct str name)
{
    static const char stem[] = DEFAULT_STEM "-";
    bool starts = str_starts(name, stem);
    size_t skip = starts ? sizeof(stem) - 1 : 0;
    struct str base = { name.ptr + skip, name.len - skip };
    for (size_t i = 0; i < GROUP_COUNT; i++)
        if (str_is(name, t->group[i]) || (starts && str_is(base, group_names[i])))
            return (enum group)i;
    return GROUP_COUNT;
}

enum topic topic_of_tier(int level)
{
    return (enum topic)(TOPIC_DISPATCH_L1 + level - 1);
}

enum group group_of_tier(int level)
{
    return (enum group)(GROUP_L1 + level - 1);
}

int topic_delay_place(enum topic to)
{
    static const int places[TOPIC_COUNT + 1] = {
        [TOPIC_DISPATCH_L4] = 1, [TOPIC_DISPATCH_L3] = 2, [TOPIC_DISPATCH_L2] = 3,
        [TOPIC_DISPATCH_L1] = 4, [TOPIC_CALLBACKS] = 1,   [TOPIC_RECONCILE] = 2,
    };
    return places[to];
}

bool topic_is_delay(enum topic topic)
{
    return topic >= TOPIC_DELAY_10S && topic <= TOPIC_RDELAY_1H;
}

bool topic_delay_may(enum topic delay, enum topic to)
{
    bool is_task = to >= TOPIC_DISPATCH_L1 && to <= TOPIC_DISPATCH_L4;
    return topic_delay_place(to) && !(is_task && delay >= TOPIC_RDELAY_1M);
}
