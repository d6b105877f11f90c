/* Text from outside on its way to a terminal. PURE. */
#ifndef CRCR_CTL_CLEAN_H
#define CRCR_CTL_CLEAN_H

#include "../../common/base/buf.h"

/* In a line: controls (C0, DEL, and C1 as UTF-8) become blanks. */
void clean_line(struct buf *to, struct str text);
/* A whole text: newlines and tabs stay, other controls become \xNN. */
void clean_text(struct buf *to, struct str text);

#endif
