#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum err file_read(struct buf *to, const char *name, struct why *why)
{
    char block[16384];
    size_t n;
    FILE *in = strcmp(name, "-") ? fopen(name, "r") : stdin;

    if (!in)
        return why_set(why, ERR_REFUSE, "%s: %s", name, strerror(errno));
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        buf_put(to, (struct str){ block, n });
    bool failed = ferror(in);
    if (in != stdin)
        fclose(in);
    if (failed)
        return why_set(why, ERR_REFUSE, "%s: cannot be read", name);
    if (buf_full(to))
        return why_set(why, ERR_REFUSE, "%s: larger than %zu bytes", name, to->max);
    return OK;
}
