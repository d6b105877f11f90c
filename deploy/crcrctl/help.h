/* The table of verbs.h for people: --help, the manual page, completion. */
#ifndef CRCR_CTL_HELP_H
#define CRCR_CTL_HELP_H

#include "../../common/base/buf.h"
#include "verbs.h"

/* All verbs, one line each. */
void help_all(struct buf *to);
/* The verb of that name, or the verbs whose name begins with that word; false: there are none. */
bool help_verb(struct buf *to, const char *name);
/* A page for man(1). */
void help_manual(struct buf *to);
/* A script for bash. */
void help_completion(struct buf *to);

#endif
