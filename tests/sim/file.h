/* Reading whole files. */
#ifndef CRCR_SIM_FILE_H
#define CRCR_SIM_FILE_H

#include "../../common/base/buf.h"

/* Appends the file's content. ERR_REFUSE: not there, not readable, or more than the buffer takes.
 */
enum err file_read(const char *path, struct buf *to, struct why *why) MUST_CHECK;

#endif
