/* Escapes in the strings of a JSON text (RFC 8259 section 7). PURE. */
#ifndef CRCR_MODEL_JSON_ESCAPE_H
#define CRCR_MODEL_JSON_ESCAPE_H

#include "../base/str.h"

/* Bytes of the escape that text begins with; a surrogate pair is one. 0: no escape of JSON. *code:
 * the character that it stands for, or half of a surrogate pair. */
size_t json_escape_read(struct str text, uint32_t *code);

/* Why an escape of this code is refused: it is NUL, or half of a surrogate pair. NULL: it is not.
 */
const char *json_escape_fault(uint32_t code);

/* Writes the character as UTF-8 (1 to 4 bytes) and gives the end of it. */
char *json_escape_put(char *to, uint32_t code);

#endif
