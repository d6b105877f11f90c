#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum err file_read(const char *path, struct buf *to, struct why *why)
{
    FILE *file = fopen(path, "re");
    char block[8192];
    bool broken;
    size_t n;

    if (!file)
        return why_set(why, ERR_REFUSE, "cannot read %s: %s", path, strerror(errno));
    while ((n = fread(block, 1, sizeof(block), file)) > 0)
        buf_put(to, (struct str){ block, n });
    broken = ferror(file); /* a folder opens, but cannot be read */
    fclose(file);
    if (broken)
        return why_set(why, ERR_REFUSE, "cannot read %s", path);
    return buf_full(to) ? why_set(why, ERR_REFUSE, "%s is too large", path) : OK;
}
