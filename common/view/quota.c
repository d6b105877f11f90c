#include "quota.h"

#include <string.h>

static bool number_of(struct str info, const char *name, int64_t *ret)
{
    struct str line;
    while (str_split(&info, '\n', &line))
        if (str_starts(line, name))
            return str_to_i64(str_trim(str_from(line, strlen(name))), ret);
    return false;
}

bool view_memory_read(struct str info, struct view_memory *ret)
{
    struct view_memory read;
    if (!number_of(info, "used_memory:", &read.used) || !number_of(info, "maxmemory:", &read.max))
        return false;
    *ret = read;
    return true;
}

int64_t view_quota(const struct view_memory *memory, size_t n)
{
    if (memory->max <= 0 || memory->used < memory->max / 2 || memory->used >= memory->max)
        return VIEW_QUOTA_BYTES;
    if (memory->used >= memory->max / 5 * 4)
        return 0;
    int64_t share = memory->max / 5 * 3 / (n ? (int64_t)n : 1);
    return share < VIEW_QUOTA_BYTES ? share : VIEW_QUOTA_BYTES;
}
