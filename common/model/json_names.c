#include "json_names.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

#define FEW 16 /* names that are faster compared with each other than sorted */

struct json_name_copy {
    struct json_name_copy *next;
    char text[];
};

void json_names_open(struct json_names *names)
{
    names->base[names->depth++] = names->n;
}

static struct str name_copy(struct json_names *names, struct str name)
{
    struct json_name_copy *copy = mem_resize(NULL, 1, sizeof(*copy) + name.len);
    memcpy(copy->text, name.ptr, name.len);
    copy->next = names->copies;
    names->copies = copy;
    return (struct str){ copy->text, name.len };
}

void json_names_add(struct json_names *names, struct str name, struct str text)
{
    if (names->n == names->cap) {
        names->cap = names->cap == 0 ? 64 : names->cap * 2;
        names->at = mem_resize(names->at, names->cap, sizeof(*names->at));
    }
    uintptr_t at = (uintptr_t)name.ptr, start = (uintptr_t)text.ptr;
    bool in_text = at >= start && at < start + text.len;
    names->at[names->n++] = in_text ? name : name_copy(names, name);
}

/* Any total order will do; lengths mostly decide. */
static int name_order(const void *left, const void *right)
{
    const struct str *a = left, *b = right;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->ptr, b->ptr, a->len);
}

static bool all_differ(struct str *at, size_t n)
{
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (name_order(&at[i], &at[k]) == 0)
                    return false;
        return true;
    }
    qsort(at, n, sizeof(*at), name_order);
    for (size_t i = 1; i < n; i++)
        if (name_order(&at[i - 1], &at[i]) == 0)
            return false;
    return true;
}

bool json_names_close(struct json_names *names)
{
    size_t base = names->base[--names->depth];
    size_t n = names->n - base;
    names->n = base;
    return n < 2 || all_differ(names->at + base, n);
}

void json_names_clear(struct json_names *names)
{
    free(names->at);
    while (names->copies) {
        struct json_name_copy *next = names->copies->next;
        free(names->copies);
        names->copies = next;
    }
    *names = (struct json_names){ 0 };
}
