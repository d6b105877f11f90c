/* Reading a file. */
#ifndef CRCR_BASE_FILE_H
#define CRCR_BASE_FILE_H

#include "buf.h"

/* Appends all that there is to read of fd, and closes it. fd -1 is an open() that failed: errno
 * says why. The text of an error does not name the file.
 * ERR_RETRY: it cannot be read. ERR_REFUSE: it has more than `to` may hold. */
enum err file_read(struct buf *to, int fd, struct why *why) MUST_CHECK;

#endif
