/* Documents of GitHub's that appear inside many answers, and how it writes times and ids. */
#ifndef CRCR_SIM_SHAPE_H
#define CRCR_SIM_SHAPE_H

#include <stdint.h>

#include "../../common/base/str.h"

typedef struct json_t json_t;

/* All are the caller's. base is the simulator's own URL. */
json_t *shape_user(const char *base, struct str login);
json_t *shape_repo(const char *base, struct str full_name);
json_t *shape_commit(const char *base, struct str repo, struct str sha);
/* head_commit of runs and suites. */
json_t *shape_simple_commit(struct str sha);
/* "2026-11-21T03:20:00Z" */
json_t *shape_time(int64_t wall_ms);
/* A number that is always the same for the same text, in the range of GitHub's ids. */
int64_t shape_id(struct str text);
json_t *shape_node_id(const char *kind, int64_t id);

#endif
