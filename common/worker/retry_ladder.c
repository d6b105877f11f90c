#include "retry_ladder.h"

static const struct {
    int64_t ms;
    enum topic of_task, of_reporter;
} steps[] = {
    { 10000, TOPIC_DELAY_10S, TOPIC_RDELAY_1M },
    { 60000, TOPIC_DELAY_1M, TOPIC_RDELAY_1M },
    { 600000, TOPIC_DELAY_10M, TOPIC_RDELAY_10M },
    { 3600000, TOPIC_DELAY_1H, TOPIC_RDELAY_1H },
};
#define N_STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

int64_t retry_wait_ms(int attempt)
{
    return attempt >= 1 && attempt <= N_STEPS ? steps[attempt - 1].ms : 0;
}

enum topic delay_topic_of(enum topic to, int64_t wait_ms)
{
    int i = 0;
    while (i < N_STEPS - 1 && wait_ms > steps[i].ms)
        i++;
    return topic_delay_may(steps[i].of_reporter, to) ? steps[i].of_reporter : steps[i].of_task;
}

int64_t delay_topic_ms(enum topic delay)
{
    for (int i = N_STEPS - 1; i >= 0; i--)
        if (steps[i].of_task == delay || steps[i].of_reporter == delay)
            return steps[i].ms;
    return 0;
}

void delay_headers(struct headers *headers, const char *to_topic, int64_t not_before_ms,
                   const char *error)
{
    headers_leave_room(headers, 4);
    headers_set(headers, "to_topic", str_of(to_topic));
    headers_set_i64(headers, "not_before_ms", not_before_ms);
    headers_set(headers, "error", str_of(error));
}
