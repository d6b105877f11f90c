/* What happened, for /_sim/state: documents in order, the oldest forgotten past a limit. */
#ifndef CRCR_SIM_ROWS_H
#define CRCR_SIM_ROWS_H

#include <stddef.h>

typedef struct json_t json_t;
struct rows;

struct rows *rows_new(size_t keep);
void rows_free(struct rows *r);
void rows_reset(struct rows *r);
/* Takes row over. */
void rows_put(struct rows *r, json_t *row);
/* An array of all, oldest first; the caller's. */
json_t *rows_describe(const struct rows *r);

#endif
