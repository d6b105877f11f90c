#include "tenure.h"

#include <stdlib.h>
#define uthash_fatal(msg) abort() /* as mem_alloc; the default is exit() */
#include <uthash.h>

#include "../../common/base/mem.h"

struct stay {
    char repo[REPO_MAX + 1]; /* in lower case */
    int level;
    int64_t since_ms;
    size_t version; /* the last one that lists it */
    UT_hash_handle hh;
};

struct tenure {
    struct stay *stays;
    size_t version; /* how many have come */
};

struct tenure *tenure_new(void)
{
    return mem_alloc(1, sizeof(struct tenure));
}

void tenure_free(struct tenure *t)
{
    struct stay *stay, *next;
    if (!t)
        return;
    HASH_ITER(hh, t->stays, stay, next)
    {
        HASH_DEL(t->stays, stay);
        free(stay);
    }
    free(t);
}

static struct stay *find(const struct tenure *t, struct str repo)
{
    char key[REPO_MAX + 1];
    struct stay *stay;
    if (!str_lower(key, sizeof(key), repo))
        return NULL;
    HASH_FIND_STR(t->stays, key, stay);
    return stay;
}

void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms)
{
    t->version++;
    for (size_t i = 0; i < allowlist_size(list); i++) {
        const struct allowlist_entry *entry = allowlist_at(list, i);
        struct stay *stay = find(t, entry->repo);
        if (!stay) {
            stay = mem_alloc(1, sizeof(*stay));
            str_lower(stay->repo, sizeof(stay->repo), entry->repo);
            HASH_ADD_STR(t->stays, repo, stay);
        }
        if (stay->level != entry->level || stay->version + 1 != t->version)
            stay->since_ms = at_ms;
        stay->level = entry->level;
        stay->version = t->version;
    }
}

int64_t tenure_since_ms(const struct tenure *t, struct str repo)
{
    const struct stay *stay = find(t, repo);
    return stay && stay->version == t->version ? stay->since_ms : -1;
}
