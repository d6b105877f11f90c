#include "park.h"

#include "../common/base/clock.h"
#include "../common/model/burial.h"

enum err park_in_dlq(struct topic_writer *w, const struct topics *topics,
                     const struct record *record, const char *class, const char *error,
                     topic_written_fn *done, void *opaque, struct why *why)
{
    struct burial b;
    burial_init(&b, record->key, record->value, &record->headers);
    burial_explain(&b, record->at.topic, class, error, clock_wall_ms());
    return topic_writer_put(w, topics->name[TOPIC_DLQ], b.key, b.value, &b.headers, done, opaque,
                            why);
}

static const struct {
    enum topic topic;
    int64_t ms;
} delays[] = {
    { TOPIC_DELAY_1M, 60000 },
    { TOPIC_DELAY_10M, 600000 },
    { TOPIC_DELAY_1H, 3600000 },
};
#define N_DELAYS ((int64_t)(sizeof(delays) / sizeof(delays[0])))

int64_t park_count(const struct record *record)
{
    int64_t count = headers_get_i64(&record->headers, "delays", 0);
    return count > 0 ? count : 0;
}

bool park_delay_left(int64_t count)
{
    return count < N_DELAYS;
}

static enum err put_in_delay(struct topic_writer *w, const struct topics *topics,
                             const struct record *record, size_t delay, int64_t until_ms,
                             int64_t count, const char *error, topic_written_fn *done, void *opaque,
                             struct why *why)
{
    struct headers headers;
    if (!burial_keeps_whole(record->key, record->value, &record->headers))
        return park_in_dlq(w, topics, record, "refused", "too large to be put off", done, opaque,
                           why);
    headers_copy(&headers, &record->headers);
    headers_leave_room(&headers, 4);
    headers_set(&headers, "to_topic", str_of(record->at.topic));
    headers_set_i64(&headers, "not_before_ms", until_ms);
    headers_set(&headers, "error", str_of(error));
    headers_set_i64(&headers, "delays", count);
    int place = topic_delay_place(topics_find(topics, str_of(record->at.topic)));
    return topic_writer_put_in(w, topics->name[delays[delay].topic], place, record->key,
                               record->value, &headers, done, opaque, why);
}

enum err park_in_delay(struct topic_writer *w, const struct topics *topics,
                       const struct record *record, const char *error, topic_written_fn *done,
                       void *opaque, struct why *why)
{
    int64_t count = park_count(record);
    return put_in_delay(w, topics, record, (size_t)count, clock_wall_ms() + delays[count].ms,
                        count + 1, error, done, opaque, why);
}

enum err park_until(struct topic_writer *w, const struct topics *topics,
                    const struct record *record, int64_t wait_ms, const char *error,
                    topic_written_fn *done, void *opaque, struct why *why)
{
    size_t delay = 0;
    while (delay + 1 < N_DELAYS && wait_ms > delays[delay].ms)
        delay++;
    return put_in_delay(w, topics, record, delay, clock_wall_ms() + wait_ms, park_count(record),
                        error, done, opaque, why);
}
