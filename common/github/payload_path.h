/* Private to payload_fit: where a value is in a webhook payload, and whether it must stay.
 * PURE.
 */
#ifndef CRCR_GITHUB_PAYLOAD_PATH_H
#define CRCR_GITHUB_PAYLOAD_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Members by name: "a.b", "a[].b"; NUL-terminated. All zero is the whole payload. */
struct payload_path {
    char text[1024];
    size_t len;
};

/* Goes one member ("." and its name) or into the elements of an array ("" and "[]") deeper; gives
 * what payload_path_pop takes to come back. */
size_t payload_path_push(struct payload_path *p, const char *separator, const char *name);
void payload_path_pop(struct payload_path *p, size_t before);
/* True for what fitting never touches. */
bool payload_path_protected(const struct payload_path *p);
/* True also for what holds, or may hold, something protected. */
bool payload_path_leads(const struct payload_path *p);

#endif
