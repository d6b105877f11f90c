#include "topic_placement.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LASTS   3
#define BUSY_US 10000000

void topic_placement_init(struct topic_placement *p)
{
    *p = (struct topic_placement){ .seen = NULL };
}

void topic_placement_clear(struct topic_placement *p)
{
    json_decref(p->seen);
    topic_placement_init(p);
}

/* -1: it has none for now, which is no reason to wonder; also where nothing is told. */
static int64_t broker_of(const json_t *partition, const char *member)
{
    const json_t *id = json_object_get(partition, member);

    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* A thread that connects for so long waits for a name server, or for a broker that is cut off: it
 * lets go of its partitions as soon as it can. */
static bool is_busy(const json_t *root, int64_t id)
{
    json_t *broker;
    const char *name;

    json_object_foreach(json_object_get(root, "brokers"), name, broker)
    {
        const char *state = json_string_value(json_object_get(broker, "state"));
        if (broker_of(broker, "nodeid") == id && state && strcmp(state, "UP"))
            return json_integer_value(json_object_get(broker, "stateage")) > BUSY_US;
    }
    return false;
}

/* A consumer tells of every partition of its topics; it asks for those that it was given. */
static bool is_asked_for(const json_t *root, const json_t *partition)
{
    const char *type = json_string_value(json_object_get(root, "type"));

    return !type || strcmp(type, "consumer") || json_is_true(json_object_get(partition, "desired"));
}

static void compare(struct topic_placement *p, const json_t *root, json_t *now, const char *topic,
                    const char *id, const json_t *partition)
{
    int64_t broker = broker_of(partition, "broker"), leader = broker_of(partition, "leader");
    char text[sizeof(p->lasting)];

    if (broker < 0 || leader < 0 || broker == leader || !is_asked_for(root, partition) ||
        is_busy(root, broker))
        return;
    snprintf(text, sizeof(text),
             "%s [%s] is asked of broker %" PRId64 ", but broker %" PRId64 " leads it", topic, id,
             broker, leader);
    json_int_t times = 1 + json_integer_value(json_object_get(p->seen, text));
    json_object_set_new(now, text, json_integer(times));
    if (times >= LASTS && !p->lasting[0])
        snprintf(p->lasting, sizeof(p->lasting), "%s", text);
}

void topic_placement_see(struct topic_placement *p, struct str statistics)
{
    json_t *root = json_loadb(statistics.ptr, statistics.len, 0, NULL);
    json_t *now = json_object(), *topic, *partition;
    const char *name, *id;

    p->lasting[0] = '\0';
    json_object_foreach(json_object_get(root, "topics"), name, topic)
    {
        json_object_foreach(json_object_get(topic, "partitions"), id, partition)
            compare(p, root, now, name, id, partition);
    }
    json_decref(p->seen);
    p->seen = now;
    json_decref(root);
}

const char *topic_placement_astray(const struct topic_placement *p)
{
    return p->lasting[0] ? p->lasting : NULL;
}
