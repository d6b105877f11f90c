#include "park.h"

static const struct {
    int64_t ms;
    enum topic topic;
} steps[] = {
    { 10000, TOPIC_DELAY_10S },
    { 60000, TOPIC_DELAY_1M },
    { 600000, TOPIC_DELAY_10M },
    { 3600000, TOPIC_DELAY_1H },
};
#define N_STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

int64_t park_wait_ms(int attempt)
{
    return attempt >= 1 && attempt <= N_STEPS ? steps[attempt - 1].ms : 0;
}

enum topic park_topic(int64_t wait_ms)
{
    int i = 0;
    while (i < N_STEPS - 1 && wait_ms > steps[i].ms)
        i++;
    return steps[i].topic;
}

int64_t park_topic_ms(enum topic delay)
{
    for (int i = 0; i < N_STEPS; i++)
        if (steps[i].topic == delay)
            return steps[i].ms;
    return 0;
}

void park_headers(struct headers *headers, const char *to_topic, int64_t not_before_ms,
                  const char *error)
{
    headers_leave_room(headers, 4);
    headers_set(headers, "to_topic", str_of(to_topic));
    headers_set_i64(headers, "not_before_ms", not_before_ms);
    headers_set(headers, "error", str_of(error));
}
