#include "tenure.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/table.h"

#define LEVELS 5 /* 0: not listed */

/* Of a repository, by its name in lower case. */
struct stay {
    struct level_change changes[TENURE_CHANGES]; /* newest first */
    size_t n;
    int64_t before_ms[LEVELS]; /* at each level, in the stays that are over */
    size_t version;            /* the last one that was looked at with it */
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
    const struct level_change *last = stay->n ? &stay->changes[0] : NULL;
    if (last && last->level == level)
        return;
    if (last && at_ms > last->since_ms)
        stay->before_ms[last->level] += at_ms - last->since_ms;
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

static const struct stay *stay_find(const struct tenure *t, struct str repo)
{
    char key[REPO_MAX + 1];
    return str_lower(key, sizeof(key), repo) ? table_get(&t->stays, str_of(key)) : NULL;
}

int64_t tenure_since_ms(const struct tenure *t, struct str repo)
{
    const struct stay *stay = stay_find(t, repo);
    return stay && stay->changes[0].level > 0 ? stay->changes[0].since_ms : -1;
}

int64_t tenure_total_ms(const struct tenure *t, struct str repo, int level, int64_t now_ms)
{
    const struct stay *stay = stay_find(t, repo);
    if (!stay)
        return -1;
    const struct level_change *last = &stay->changes[0];
    if (last->level != level)
        return stay->before_ms[level] > 0 ? stay->before_ms[level] : -1;
    return stay->before_ms[level] + (now_ms > last->since_ms ? now_ms - last->since_ms : 0);
}

size_t tenure_history(const struct tenure *t, struct str repo,
                      struct level_change to[TENURE_CHANGES])
{
    const struct stay *stay = stay_find(t, repo);
    if (!stay)
        return 0;
    memcpy(to, stay->changes, stay->n * sizeof(to[0]));
    return stay->n;
}
