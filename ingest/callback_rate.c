#include "callback_rate.h"

#include <pthread.h>
#include <stdlib.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/base/table.h"
#include "../common/model/limits.h"
#include "provenance.h"

#define SECOND_US   INT64_C(1000000)
#define DAY_US      (86400 * SECOND_US)
#define HELD_MIN    10 /* what a bucket holds, as the time in which it fills */
#define HELD_US     (HELD_MIN * 60 * SECOND_US)
#define SECONDS(us) (int)(((us) + SECOND_US - 1) / SECOND_US)

/* A bucket is one number: when it will be full again. Until then so much of HELD_US is missing. */
struct rate_buckets {
    int64_t requests_full_us, bytes_full_us;
    int64_t day, day_bytes; /* days since 1970 */
};

struct callback_rate {
    struct rate_limit limit;
    pthread_mutex_t lock;
    struct table by_repo; /* of struct rate_buckets by repository in lower case; under lock */
};

struct callback_rate *callback_rate_new(int64_t requests_per_min, int64_t bytes_per_min,
                                        int64_t bytes_a_day)
{
    struct callback_rate *rate = mem_alloc(1, sizeof(*rate));
    rate->limit = (struct rate_limit){ .requests = requests_per_min * HELD_MIN,
                                       .bytes = bytes_per_min * HELD_MIN,
                                       .period_s = HELD_MIN * 60,
                                       .bytes_a_day = bytes_a_day };
    rate->by_repo.size = sizeof(struct rate_buckets);
    pthread_mutex_init(&rate->lock, NULL);
    return rate;
}

void callback_rate_free(struct callback_rate *rate)
{
    if (!rate)
        return;
    table_clear(&rate->by_repo);
    pthread_mutex_destroy(&rate->lock);
    free(rate);
}

/* A new one has full buckets. */
static struct rate_buckets *buckets_of(struct callback_rate *rate, struct str repo)
{
    char name[REPO_MAX + 1];
    (void)str_lower(name, sizeof(name), repo);
    return table_make(&rate->by_repo, str_of(name));
}

/* When the bucket is full again after taking so much from it. */
static int64_t full_after(int64_t full_us, int64_t taken, int64_t holds, int64_t now_us)
{
    return (full_us > now_us ? full_us : now_us) + taken * HELD_US / holds;
}

static struct rate_wait buckets_take(struct rate_buckets *a, const struct rate_limit *limit,
                                     int64_t bytes, int64_t now_us)
{
    int64_t day = now_us / DAY_US;
    int64_t day_bytes = bytes + (a->day == day ? a->day_bytes : 0);
    if (day_bytes > limit->bytes_a_day)
        return (struct rate_wait){ SECONDS((day + 1) * DAY_US - now_us), .day = true };
    int64_t requests_us = full_after(a->requests_full_us, 1, limit->requests, now_us);
    int64_t bytes_us = full_after(a->bytes_full_us, bytes, limit->bytes, now_us);
    int64_t last_us = requests_us > bytes_us ? requests_us : bytes_us;
    if (last_us > now_us + HELD_US)
        return (struct rate_wait){ .seconds = SECONDS(last_us - now_us - HELD_US) };
    a->requests_full_us = requests_us;
    a->bytes_full_us = bytes_us;
    a->day = day;
    a->day_bytes = day_bytes;
    return (struct rate_wait){ 0 };
}

struct rate_wait callback_rate_take_alone(struct callback_rate *rate, struct str repo,
                                          int64_t bytes, int64_t now_us)
{
    pthread_mutex_lock(&rate->lock);
    struct rate_wait wait = buckets_take(buckets_of(rate, repo), &rate->limit, bytes, now_us);
    pthread_mutex_unlock(&rate->lock);
    return wait;
}

struct rate_wait callback_rate_take(struct callback_rate *rate, struct redis *redis,
                                    struct str repo, int64_t bytes, bool *alone)
{
    struct rate_wait wait;
    struct why why;
    *alone = !!rate_take(redis, RATE_CALLBACKS, repo, &rate->limit, bytes, &wait, &why);
    return *alone ? callback_rate_take_alone(rate, repo, bytes, clock_wall_ms() * 1000) : wait;
}

int callback_rate_pending(struct redis *redis, struct str repo, int64_t bytes)
{
    static const struct rate_limit limit = {
        .requests = CALLBACK_PENDING_A_MINUTE,
        .bytes = CALLBACK_PENDING_A_MINUTE * CALLBACK_PENDING_MAX_BYTES,
        .period_s = 60,
    };
    struct rate_wait wait;
    struct why why;
    if (bytes > CALLBACK_PENDING_MAX_BYTES)
        return PROVENANCE_GRACE_MS / 1000;
    return rate_take(redis, RATE_PENDING, repo, &limit, bytes, &wait, &why) ? 0 : wait.seconds;
}
