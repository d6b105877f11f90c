/* A borrowed run of bytes: pointer and length, not NUL-terminated. What comes from outside is one
 * of these until it has been validated. ptr == NULL means absent; ptr != NULL with len 0 means
 * empty. */
#ifndef CRCR_BASE_STR_H
#define CRCR_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR_NONE   ((struct str){ NULL, 0 })
#define STR_LIT(s) ((struct str){ "" s, sizeof(s) - 1 })
/* For printf: printf("%.*s", STR_ARG(s)). Cut at INT_MAX. */
#define STR_ARG(s) (int)(s).len, ((s).ptr ? (s).ptr : "")

/* Borrows a C string; NULL gives STR_NONE. */
struct str str_of(const char *text);
bool str_eq(struct str a, struct str b);
/* ASCII case is ignored, as GitHub does for owner and repository names. */
bool str_eq_nocase(struct str a, struct str b);
bool str_is(struct str s, const char *text);
bool str_starts(struct str s, const char *prefix);
bool str_ends(struct str s, const char *suffix);
/* strcmp-like order over bytes. */
int str_cmp(struct str a, struct str b);
/* The first i bytes are skipped; i past the end gives an empty string. */
struct str str_from(struct str s, size_t i);
struct str str_trim(struct str s);
/* At most the first max_bytes, and never a part of a UTF-8 character at the end. */
struct str str_cut(struct str s, size_t max_bytes);
/* Length of the character at i if it is a control character (C0, DEL, C1), or 0. */
size_t str_control_at(struct str s, size_t i);
/* Length of the mark at i that turns the direction of what follows it (U+061C, U+200E, U+200F,
 * U+202A to U+202E, U+2066 to U+2069), or 0: with these a text looks like another one. */
size_t str_turn_at(struct str s, size_t i);
/* Index of c, or -1. */
ptrdiff_t str_find(struct str s, char c);
/* Position of needle in s, or -1. */
ptrdiff_t str_find_str(struct str s, struct str needle);
/* Takes the part before the next separator off *rest into *part; false when nothing is left.
 * "a,,b" gives "a", "", "b"; "" gives nothing. */
bool str_split(struct str *rest, char separator, struct str *part);
/* All of s must be decimal digits; false on anything else or overflow. A minus sign is accepted
 * by str_to_i64. */
bool str_to_u64(struct str s, uint64_t *ret);
bool str_to_i64(struct str s, int64_t *ret);
/* The other way: n in decimal, written into to and borrowed from it. */
#define STR_NUMBER_SIZE 24
struct str str_number(char to[STR_NUMBER_SIZE], int64_t n);
/* Milliseconds, not below 0, as seconds with three decimals. */
struct str str_seconds(char to[STR_NUMBER_SIZE], int64_t ms);
/* As str_number, where the text is needed only until the end of the block that this is written in.
 */
#define STR_NUMBER(n) str_number((char[STR_NUMBER_SIZE]){ "" }, (n))
/* A NUL-terminated copy, the caller's to free; STR_NONE gives NULL. */
char *str_dup(struct str s);
/* Copies into a fixed array and terminates it; false (and "" stored) when it does not fit. */
bool str_copy(char *to, size_t size, struct str s);
/* The same in lower case (ASCII). */
bool str_lower(char *to, size_t size, struct str s);

#endif
