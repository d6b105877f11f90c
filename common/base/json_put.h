/* JSON as text, member by member: the comma comes by itself, unless an opening bracket, a name or
 * the end of a line is before it. PURE. */
#ifndef CRCR_BASE_JSON_PUT_H
#define CRCR_BASE_JSON_PUT_H

#include "buf.h"

/* Before an element of an array. */
void json_put_comma(struct buf *to);
/* "name": */
void json_put_name(struct buf *to, const char *name);
/* Opens a list or an object, by its bracket: a member, or with NULL an element. */
void json_put_begin(struct buf *to, const char *name, char bracket);
/* Absent (ptr NULL): null. */
void json_put_text(struct buf *to, const char *name, struct str text);
/* The same; NULL or "": null. */
void json_put_string(struct buf *to, const char *name, const char *text);
/* Below 0: null. */
void json_put_number(struct buf *to, const char *name, int64_t n);
/* Seconds with three decimals. Below 0: null. */
void json_put_seconds(struct buf *to, const char *name, int64_t ms);
/* RFC 3339. Not above 0: null. */
void json_put_time(struct buf *to, const char *name, int64_t wall_ms);
void json_put_bool(struct buf *to, const char *name, bool value);

#endif
