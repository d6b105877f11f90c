/* The lines of a text that is being edited, each knowing where it came from, so that what changed
 * can be shown as a unified diff. PURE. */
#ifndef CRCR_MODEL_TEXT_LINES_H
#define CRCR_MODEL_TEXT_LINES_H

#include "../base/buf.h"

struct text_line {
    char *text; /* without the newline */
    size_t old; /* its number in the text as it was, from 1; 0: it is new */
};

struct text_lines {
    struct text_line *at;
    size_t n;
};

/* to is empty (all zero) before. A last line without a newline gets one. */
void text_lines_read(struct text_lines *to, struct str text);
void text_lines_clear(struct text_lines *lines);
/* The new line becomes lines->at[i]; text is copied. */
void text_lines_insert(struct text_lines *lines, size_t i, struct str text);
void text_lines_remove(struct text_lines *lines, size_t i, size_t n);
void text_lines_put(const struct text_lines *lines, struct buf *to);
/* What became of old, with three lines around each change; nothing when they are equal. */
void text_lines_diff(struct str old, const struct text_lines *lines, const char *path,
                     struct buf *to);

#endif
