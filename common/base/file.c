#include "file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum err file_read(struct buf *to, int fd, struct why *why)
{
    char block[16384];
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && !buf_full(to)) {
        n = read(fd, block, sizeof(block));
        if (n > 0)
            buf_put(to, (struct str){ block, (size_t)n });
    }
    enum err err = n < 0 ? why_set(why, ERR_RETRY, "%s", strerror(errno)) : OK;
    explicit_bzero(block, sizeof(block)); /* it may have been a secret */
    if (fd >= 0)
        close(fd);
    if (!err && buf_full(to))
        err = why_set(why, ERR_REFUSE, "more than %zu bytes", to->max);
    return err;
}
