#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "config_private.h"

/* What the guarantees need as it is (README.md, "What is guaranteed"), and why one may not turn it.
 * A name that ends in a dot stands for all below it. */
static const struct {
    const char *name;
    const char *why;
} refused[] = {
    { "bootstrap.servers", "KAFKA_BROKERS says that" },
    { "metadata.broker.list", "KAFKA_BROKERS says that" },
    { "client.id", "it names the daemon" },
    { "acks", "a record counts as stored only when all replicas have it" },
    { "request.required.acks", "a record counts as stored only when all replicas have it" },
    { "enable.idempotence", "a retry must not store a record twice or out of order" },
    { "transactional.id", "no producer here is transactional" },
    { "partitioner", "the order of a pull request depends on its key's partition" },
    { "sticky.partitioning.linger.ms", "what is put off has a partition with or without a key" },
    { "batch.size", "the broker refuses all of a batch that is larger than a topic takes" },
    { "message.timeout.ms", "GitHub is answered before it hangs up" },
    { "delivery.timeout.ms", "GitHub is answered before it hangs up" },
    { "enable.auto.commit", "an offset is committed when every record before it is done" },
    { "auto.commit.interval.ms", "an offset is committed when every record before it is done" },
    { "enable.auto.offset.store", "an offset is committed when every record before it is done" },
    { "auto.offset.reset", "a new group must not pass over what is there" },
    { "group.", "autoscalers and crcrctl rely on the names of the groups" },
    { "partition.assignment.strategy", "partitions are handed over one by one" },
    { "plugin.library.paths", "no foreign code is loaded" },
    { "statistics.interval.ms", "partitions that are asked of the wrong broker are known by it" },
};

static bool is_refused(struct str name, size_t i)
{
    return str_ends(str_of(refused[i].name), ".") ? str_starts(name, refused[i].name)
                                                  : str_is(name, refused[i].name);
}

/* A reporter publishes only while its session lasts longer than the publishing may take
 * (topic_reader_holds). */
#define SESSION_MIN_MS 6000

static enum err check_session(const char *name, const char *value, struct why *why)
{
    int64_t ms;
    if (strcmp(name, "session.timeout.ms") != 0 || !str_to_i64(str_of(value), &ms) ||
        ms >= SESSION_MIN_MS)
        return OK;
    return why_set(why, ERR_REFUSE,
                   "%s is at least %d, not %s: in less a reporter could not publish and be sure "
                   "that nobody else does",
                   name, SESSION_MIN_MS, value);
}

/* CRCR_KAFKA_SECURITY_PROTOCOL → security.protocol; the caller frees it. */
static char *librdkafka_name(struct str name)
{
    char *made = str_dup(str_from(name, strlen(KAFKA_PREFIX)));
    for (char *p = made; *p; p++) {
        if (*p == '_')
            *p = '.';
        else if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    return made;
}

enum err config_kafka_add(struct config *c, struct str name, const char *value, struct why *why)
{
    char *made = librdkafka_name(name);
    enum err err = OK;
    if (!*made)
        err = why_set(why, ERR_REFUSE, "a librdkafka property must follow, dots as underscores");
    else if (c->n_kafka == KAFKA_PROPERTIES_MAX)
        err = why_set(why, ERR_REFUSE, "more than %d properties", KAFKA_PROPERTIES_MAX);
    for (size_t i = 0; !err && i < sizeof(refused) / sizeof(refused[0]); i++)
        if (is_refused(str_of(made), i))
            err = why_set(why, ERR_REFUSE, "%s is fixed: %s", made, refused[i].why);
    if (!err)
        err = check_session(made, value, why);
    if (err) {
        free(made);
        return err;
    }
    c->kafka[c->n_kafka++] = (struct kafka_property){ made, mem_dup(value) };
    return OK;
}

bool config_kafka_is_secret(const char *name)
{
    static const char *const parts[] = { "password", "secret", "key", "jaas", "token", "config" };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

struct kafka_options config_kafka(const struct config *c, const char *client_id)
{
    return (struct kafka_options){ .brokers = config_text(c, "KAFKA_BROKERS"),
                                   .client_id = client_id,
                                   .properties = c->kafka,
                                   .n_properties = c->n_kafka };
}
