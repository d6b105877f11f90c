#include "rows.h"

#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/mem.h"

struct rows {
    json_t *list;
    size_t keep;
};

struct rows *rows_new(size_t keep)
{
    struct rows *r = mem_alloc(1, sizeof(*r));

    r->list = json_array();
    r->keep = keep;
    return r;
}

void rows_free(struct rows *r)
{
    if (!r)
        return;
    json_decref(r->list);
    free(r);
}

void rows_reset(struct rows *r)
{
    json_array_clear(r->list);
}

void rows_put(struct rows *r, json_t *row)
{
    if (json_array_size(r->list) == r->keep)
        json_array_remove(r->list, 0);
    json_array_append_new(r->list, row);
}

json_t *rows_describe(const struct rows *r)
{
    return json_copy(r->list);
}
