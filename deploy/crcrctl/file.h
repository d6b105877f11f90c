/* A whole file in memory. */
#ifndef CRCR_CTL_FILE_H
#define CRCR_CTL_FILE_H

#include "../../common/base/buf.h"

/* Appends the file ("-": standard input) to `to`; ERR_REFUSE when it cannot be read or is larger
 * than the buffer may be. */
enum err file_read(struct buf *to, const char *name, struct why *why) MUST_CHECK;

#endif
