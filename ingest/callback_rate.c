#include "callback_rate.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../common/base/clock.h"
#include "../common/base/mem.h"
#include "../common/model/limits.h"
#include "../common/view/rate.h"

#define MINUTE_US INT64_C(60000000)
#define HELD_US   (10 * MINUTE_US) /* what a bucket holds, as the time in which it fills */

/* A bucket is one number: when it will be full again. Before that it lacks so much of HELD_US. */
struct account {
    char repo[REPO_MAX + 1]; /* lower case */
    int64_t requests_full_us, bytes_full_us;
    UT_hash_handle hh;
};

struct callback_rate {
    int64_t requests_per_min, bytes_per_min;
    pthread_mutex_t lock;
    struct account *accounts; /* under lock */
};

struct callback_rate *callback_rate_new(int64_t requests_per_min, int64_t bytes_per_min)
{
    struct callback_rate *rate = mem_alloc(1, sizeof(*rate));
    rate->requests_per_min = requests_per_min;
    rate->bytes_per_min = bytes_per_min;
    pthread_mutex_init(&rate->lock, NULL);
    return rate;
}

void callback_rate_free(struct callback_rate *rate)
{
    if (!rate)
        return;
    struct account *account, *next;
    HASH_ITER(hh, rate->accounts, account, next)
    {
        HASH_DEL(rate->accounts, account);
        free(account);
    }
    pthread_mutex_destroy(&rate->lock);
    free(rate);
}

/* A new one has full buckets. */
static struct account *account_of(struct callback_rate *rate, struct str repo)
{
    char name[REPO_MAX + 1] = "";
    (void)str_copy(name, sizeof(name), repo);
    for (char *c = name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    struct account *account;
    HASH_FIND_STR(rate->accounts, name, account);
    if (account)
        return account;
    account = mem_alloc(1, sizeof(*account));
    memcpy(account->repo, name, sizeof(name));
    HASH_ADD_STR(rate->accounts, repo, account);
    return account;
}

/* When a bucket would be full again after so much was taken from it. */
static int64_t full_after(int64_t full_us, int64_t taken, int64_t per_min, int64_t now_us)
{
    return (full_us > now_us ? full_us : now_us) + taken * MINUTE_US / per_min;
}

int callback_rate_take_alone(struct callback_rate *rate, struct str repo, int64_t bytes,
                             int64_t now_us)
{
    pthread_mutex_lock(&rate->lock);
    struct account *a = account_of(rate, repo);
    int64_t requests_us = full_after(a->requests_full_us, 1, rate->requests_per_min, now_us);
    int64_t bytes_us = full_after(a->bytes_full_us, bytes, rate->bytes_per_min, now_us);
    int64_t last_us = requests_us > bytes_us ? requests_us : bytes_us;
    int64_t wait_us = last_us - now_us - HELD_US;
    if (wait_us <= 0) {
        a->requests_full_us = requests_us;
        a->bytes_full_us = bytes_us;
    }
    pthread_mutex_unlock(&rate->lock);
    return wait_us <= 0 ? 0 : (int)((wait_us + 999999) / 1000000);
}

int callback_rate_take(struct callback_rate *rate, struct redis *redis, struct str repo,
                       int64_t bytes, bool *alone)
{
    int wait_s = 0;
    struct why why;
    *alone =
        !!rate_take(redis, repo, bytes, rate->requests_per_min, rate->bytes_per_min, &wait_s, &why);
    return *alone ? callback_rate_take_alone(rate, repo, bytes, clock_mono_us()) : wait_s;
}
