#include "dlq_entry.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const state_names[] = {
    [DLQ_OPEN] = "open",
    [DLQ_REPLAYED] = "replayed",
    [DLQ_DROPPED] = "dropped",
};

const char *dlq_state_name(enum dlq_state state)
{
    return state_names[state];
}

bool dlq_place_parse(struct str text, struct dlq_place *ret)
{
    struct str partition;
    int64_t number, offset;
    if (!str_split(&text, '@', &partition) || !str_to_i64(partition, &number) || number < 0 ||
        number > INT32_MAX || !str_to_i64(text, &offset) || offset < 0)
        return false;
    *ret = (struct dlq_place){ (int32_t)number, offset };
    return true;
}

void dlq_place_text(struct dlq_place at, char to[DLQ_PLACE_SIZE])
{
    snprintf(to, DLQ_PLACE_SIZE, "%" PRId32 "@%" PRId64, at.partition, at.offset);
}

/* What was parked keeps the headers that it came with: class says whose `resolves` it is. */
enum dlq_state dlq_resolution(const struct headers *headers, struct dlq_place *of)
{
    struct str class = headers_get(headers, "class"), resolves = headers_get(headers, "resolves");
    for (enum dlq_state to = DLQ_REPLAYED; to <= DLQ_DROPPED; to++)
        if (str_is(class, state_names[to]) && resolves.ptr && dlq_place_parse(resolves, of))
            return to;
    return DLQ_OPEN;
}
