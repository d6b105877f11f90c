/* Text headers of a Kafka record or of an HTTP message: names and values in the order they were
 * put. Values put as str are borrowed; numbers are written into the struct itself, so a struct
 * headers is never copied by assignment (use headers_copy). */
#ifndef CRCR_BASE_HEADERS_H
#define CRCR_BASE_HEADERS_H

#include "str.h"

#define HEADERS_MAX 48

struct header {
    struct str name;
    struct str value;
};

struct headers {
    struct header at[HEADERS_MAX];
    size_t n;
    char text[512]; /* numbers, as text */
    size_t text_len;
};

/* Only n and text_len need clearing; the arrays are left as they are. */
void headers_init(struct headers *h);
/* Appends; both name (usually a literal) and value are borrowed. False when it is full.
 * An absent value (ptr NULL) is not appended and gives true. */
bool headers_put(struct headers *h, const char *name, struct str value);
bool headers_put_str(struct headers *h, struct str name, struct str value);
bool headers_put_i64(struct headers *h, const char *name, int64_t value);
/* Appends; the value is copied into the struct itself (as numbers are: 512 bytes for all of them).
 */
bool headers_put_copy(struct headers *h, const char *name, struct str value);
/* Replaces the value of the first header of that name, or appends it. */
bool headers_set(struct headers *h, const char *name, struct str value);
bool headers_set_i64(struct headers *h, const char *name, int64_t value);
void headers_remove(struct headers *h, const char *name);
/* Drops the last ones until n more fit. */
void headers_leave_room(struct headers *h, size_t n);
/* Bytes of all names and values. */
size_t headers_bytes(const struct headers *h);
/* The first value of that name (ASCII case ignored), or STR_NONE. */
struct str headers_get(const struct headers *h, const char *name);
/* The value as a decimal number; fallback when absent or not a number. */
int64_t headers_get_i64(const struct headers *h, const char *name, int64_t fallback);
/* to becomes a copy that borrows the same strings; numbers are copied. */
void headers_copy(struct headers *to, const struct headers *from);

#endif
