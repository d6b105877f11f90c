/* Text for a terminal, and JSON without building a document. PURE. */
#ifndef CRCR_CTL_OUT_H
#define CRCR_CTL_OUT_H

#include <stdarg.h>
#include <stdio.h>

#include "../../common/base/buf.h"
#include "../../common/base/json_put.h"

/* Text from outside. In a line: controls (C0, DEL, C1), marks that turn the direction (str_turn_at)
 * and bytes that are no UTF-8 become blanks. */
void clean_line(struct buf *to, struct str text);
/* A whole text: newlines and tabs stay, the others of these become \xNN. */
void clean_text(struct buf *to, struct str text);
/* In one line, what is formatted; a newline at the end of the format ends the line. */
void clean_printf(struct buf *to, const char *format, ...) PRINTF_LIKE(2, 3);
void clean_vprintf(struct buf *to, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* As a line; "" as "-"; then blanks up to width, and one more. */
void put_padded(struct buf *to, const char *text, size_t width);

/* Into a fixed array, cut to fit; COPY where characters end. */
#define COPY(to, from)  ((void)str_copy((to), sizeof(to), str_cut((from), sizeof(to) - 1)))
#define FORMAT(to, ...) ((void)snprintf((to), sizeof(to), __VA_ARGS__))

/* A member of an object, beside those of json_put.h: also below 0. */
void json_int(struct buf *to, const char *name, int64_t value);

#endif
