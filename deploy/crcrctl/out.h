/* Text for a terminal, and JSON without building a document. PURE
 * but for out_width. */
#ifndef CRCR_CTL_OUT_H
#define CRCR_CTL_OUT_H

#include <stdarg.h>
#include <stdio.h>

#include "../../common/base/buf.h"
#include "../../common/base/json_put.h"

/* For text from outside. On one line: control characters (C0, DEL, C1), marks that change the
 * direction (str_turn_at) and bytes that are no UTF-8 become blanks. */
void clean_line(struct buf *to, struct str text);
/* On several lines: newlines and tabs stay; the other ones above become \xNN. */
void clean_text(struct buf *to, struct str text);
/* Formats one line, cleaned; a newline at the end of the format ends it. */
void clean_printf(struct buf *to, const char *format, ...) PRINTF_LIKE(2, 3);
void clean_vprintf(struct buf *to, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* The text, "-" if empty, padded with blanks to width, and one blank more. */
void put_padded(struct buf *to, const char *text, size_t width);
/* The same, cut to the width; at most 64. */
void put_cell(struct buf *to, const char *text, size_t width);

/* The columns of the terminal that stdout is, or COLUMNS if it does not know; 0: stdout is none,
 * and nothing is cut or broken. */
size_t out_width(void);
/* A terminal of few columns gets ids, dates and names cut short. */
bool out_narrow(void);
/* The first columns of a line, then "…" if there are more. Colours (CSI … m) take none, and all are
 * kept. width 0: all of it. */
void put_fitted(struct buf *to, struct str line, size_t width);
/* The words of a text that begins in that column: before the width a new line with that indent. */
void put_wrapped(struct buf *to, struct str text, size_t column, size_t indent, size_t width);

/* Copies into a fixed array, cut to fit; COPY cuts between characters. */
#define COPY(to, from)  ((void)str_copy((to), sizeof(to), str_cut((from), sizeof(to) - 1)))
#define FORMAT(to, ...) ((void)snprintf((to), sizeof(to), __VA_ARGS__))

/* Appends what the format shows, as "{repo:%s checks:[{id:%" PRId64 "}]}"; it may leave brackets
 * open. A text (%s, %.*s; none or empty: null), a number (%d, %zu, PRId64), true or false (%i),
 * a time (%jd, in milliseconds; none: null). into NULL: prints it as a line. */
void put_json(struct buf *into, const char *members, ...) PRINTF_LIKE(2, 3);

#endif
