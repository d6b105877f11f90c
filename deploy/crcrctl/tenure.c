#include "tenure.h"

#include <stdlib.h>

#include "../../common/base/mem.h"
#include "table.h"

/* Of a repository, by its name in lower case. */
struct stay {
    int level;
    int64_t since_ms;
    size_t version; /* the last one that lists it */
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

void tenure_add(struct tenure *t, const struct allowlist *list, int64_t at_ms)
{
    t->version++;
    for (size_t i = 0; i < allowlist_size(list); i++) {
        const struct allowlist_entry *entry = allowlist_at(list, i);
        char key[REPO_MAX + 1];
        str_lower(key, sizeof(key), entry->repo);
        struct stay *stay = table_make(&t->stays, str_of(key));
        if (stay->level != entry->level || stay->version + 1 != t->version)
            stay->since_ms = at_ms;
        stay->level = entry->level;
        stay->version = t->version;
    }
}

int64_t tenure_since_ms(const struct tenure *t, struct str repo)
{
    char key[REPO_MAX + 1];
    const struct stay *stay =
        str_lower(key, sizeof(key), repo) ? table_get(&t->stays, str_of(key)) : NULL;
    return stay && stay->version == t->version ? stay->since_ms : -1;
}
