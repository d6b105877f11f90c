/* What every role of the dispatcher begins with. */
#include "../common/base/clock.h"
#include "../common/github/github.h"
#include "../common/io/redis.h"
#include "../common/io/topic_reader.h"
#include "../common/io/topic_writer.h"
#include "dispatcher.h"

#define SPARE_AFTER_MS 15000
#define MISSING_MS     10000 /* a topic may be missing for that long */
#define AGAIN_MS       500
#define CHECK_MS       2000

enum err dispatcher_redis(const struct dispatcher *d, struct redis **ret, struct why *why)
{
    struct redis_options options = {
        .endpoint = config_text(d->config, "REDIS_ENDPOINT"),
        .login = config_text(d->config, "REDIS_LOGIN"),
        .tls = config_bool(d->config, "CRCR_REDIS_TLS"),
        .ca_file = d->http.ca_file,
    };
    return redis_new(ret, &options, why);
}

enum err dispatcher_github(const struct dispatcher *d, struct http_client *client,
                           struct github **ret, struct why *why)
{
    struct github_options options = {
        .api_url = d->api_url,
        .app_id = d->app_id,
        .key = d->key,
        .client = client,
    };
    return github_new(ret, &options, why);
}

/* Brokers may come up after us, and topics that were made a moment ago may not be known to every
 * broker yet. True: try again, half a second has passed. */
static bool try_again(struct role_ctx *role, enum err err, int64_t since_ms, const struct why *why)
{
    bool young = clock_mono_ms() - since_ms < MISSING_MS;
    if (role_stopping(role) || !(err == ERR_RETRY || (err == ERR_STOP && young)))
        return false;
    role_alive(role);
    role_ready(role, why->text);
    wake_reset(role_wake(role));
    wake_wait(role_wake(role), AGAIN_MS);
    return true;
}

enum err dispatcher_feed(struct role_ctx *role, struct dispatcher *d, struct why *why)
{
    int64_t since_ms = clock_mono_ms();
    enum err err;
    do {
        err = why_set(why, ERR_RETRY, "another role is opening the allowlist topic");
        if (pthread_mutex_trylock(&d->feed_lock) == 0) {
            err = d->feed ? OK
                          : allowlist_feed_new(&d->feed, &d->kafka, d->topics.name[TOPIC_ALLOWLIST],
                                               why);
            pthread_mutex_unlock(&d->feed_lock);
        }
    } while (err && try_again(role, err, since_ms, why));
    return role_stopping(role) ? OK : err;
}

enum err dispatcher_topics(struct role_ctx *role, struct topic_writer *writer,
                           const char *const *topics, size_t n, struct why *why)
{
    int64_t since_ms = clock_mono_ms();
    enum err err;
    do
        err = topic_writer_check(writer, topics, n, CHECK_MS, why);
    while (err && try_again(role, err, since_ms, why));
    return role_stopping(role) ? OK : err;
}

void dispatcher_ready(struct role_ctx *role, const struct topic_reader *reader, int64_t started_ms)
{
    if (topic_reader_assigned(reader) > 0 || clock_mono_ms() - started_ms > SPARE_AFTER_MS)
        role_ready(role, NULL);
    else
        role_ready(role, "no partition is assigned yet");
}
