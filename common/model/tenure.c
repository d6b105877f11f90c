#include "tenure.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/table.h"

/* Of a repository, by its name in lower case. */
struct stay {
    struct level_change changes[TENURE_CHANGES]; /* newest first */
    size_t n;
    size_t version; /* the last one that was looked at with it */
};

struct tenure {
    struct table stays;
    size_t version; /* how many have come */
};

struct tenure *tenure_new(void)
{
    struct tenure *t = mem_alloc(1, sizeof(*t));
    t->stays.size = sizeof(struct stay);
    return t;
}

void tenure_free(struct tenure *t)
{
    if (t)
        table_clear(&t->stays);
    free(t);
}

static void changed(struct stay *stay, int level, int64_t at_ms)
{
    if (stay->n && stay->changes[0].level == level)
        return;
    size_t kept = stay->n < TENURE_CHANGES ? stay->n : TENURE_CHANGES - 1;
    memmove(stay->changes + 1, stay->changes, kept * sizeof(stay->changes[0]));
    stay->changes[0] = (struct level_change){ level, at_ms };
    stay->n = kept + 1;
}

void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms)
{
    t->version++;
    for (size_t i = 0; i < allowlist_size(list); i++) {
        const struct allowlist_entry *entry = allowlist_at(list, i);
        char key[REPO_MAX + 1];
        str_lower(key, sizeof(key), entry->repo);
        struct stay *stay = table_make(&t->stays, str_of(key));
        changed(stay, entry->level, at_ms);
        stay->version = t->version;
    }
    for (struct stay *stay = NULL; (stay = table_next(&t->stays, stay));)
        if (stay->version != t->version)
            changed(stay, 0, at_ms);
}

static const struct stay *find(const struct tenure *t, struct str repo)
{
    char key[REPO_MAX + 1];
    return str_lower(key, sizeof(key), repo) ? table_get(&t->stays, str_of(key)) : NULL;
}

int64_t tenure_since_ms(const struct tenure *t, struct str repo)
{
    const struct stay *stay = find(t, repo);
    return stay && stay->changes[0].level > 0 ? stay->changes[0].since_ms : -1;
}

size_t tenure_history(const struct tenure *t, struct str repo,
                      struct level_change to[TENURE_CHANGES])
{
    const struct stay *stay = find(t, repo);
    if (!stay)
        return 0;
    memcpy(to, stay->changes, stay->n * sizeof(to[0]));
    return stay->n;
}
