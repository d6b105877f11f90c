#include "limiter.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "../common/base/mem.h"
#include "../common/model/limits.h"

#define SLOT_S 5
#define SLOTS  13 /* the current one, and those of the 60 s before it */

struct slot {
    int64_t number; /* time / SLOT_S; what is older than SLOTS slots does not count */
    int64_t requests, bytes;
};

struct account {
    char repo[REPO_MAX + 1]; /* lower case */
    struct slot slots[SLOTS];
    UT_hash_handle hh;
};

struct limiter {
    int64_t max_requests, max_bytes;
    pthread_mutex_t lock;
    struct account *accounts; /* under lock */
};

struct limiter *limiter_new(int64_t max_requests, int64_t max_bytes)
{
    struct limiter *l = mem_alloc(1, sizeof *l);
    l->max_requests = max_requests;
    l->max_bytes = max_bytes;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void limiter_free(struct limiter *l)
{
    if (l == NULL)
        return;
    struct account *account, *next;
    HASH_ITER(hh, l->accounts, account, next)
    {
        HASH_DEL(l->accounts, account);
        free(account);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct account *account_of(struct limiter *l, struct str repo)
{
    char name[REPO_MAX + 1] = "";
    (void)str_copy(name, sizeof name, repo);
    for (char *c = name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    struct account *account;
    HASH_FIND_STR(l->accounts, name, account);
    if (account != NULL)
        return account;
    account = mem_alloc(1, sizeof *account);
    memcpy(account->repo, name, sizeof name);
    HASH_ADD_STR(l->accounts, repo, account);
    return account;
}

static int account_take(struct account *account, const struct limiter *l, int64_t bytes,
                        int64_t now_s)
{
    int64_t now = now_s / SLOT_S, requests = 0, total = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &account->slots[i];
        if (slot->number <= now - SLOTS)
            *slot = (struct slot){ .number = now - (now - (int64_t)i + SLOTS) % SLOTS };
        requests += slot->requests;
        total += slot->bytes;
    }
    struct slot *current = &account->slots[now % SLOTS];
    if (requests + 1 <= l->max_requests && total + bytes <= l->max_bytes) {
        current->requests++;
        current->bytes += bytes;
        return 0;
    }
    /* The oldest slots leave first; the request passes once enough of them are gone. */
    for (int64_t number = now - SLOTS + 1; number <= now; number++) {
        requests -= account->slots[number % SLOTS].requests;
        total -= account->slots[number % SLOTS].bytes;
        if (requests + 1 <= l->max_requests && total + bytes <= l->max_bytes)
            return (int)((number + SLOTS) * SLOT_S - now_s);
    }
    return SLOTS * SLOT_S;
}

int limiter_take(struct limiter *l, struct str repo, int64_t bytes, int64_t now_s)
{
    pthread_mutex_lock(&l->lock);
    int wait_s = account_take(account_of(l, repo), l, bytes, now_s);
    pthread_mutex_unlock(&l->lock);
    return wait_s;
}
