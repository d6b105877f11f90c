/* `crcrctl redeliver --every`: how far each round looks back, and when the next one begins. PURE
 * but for the verb beside it. */
#ifndef CRCR_CTL_REDELIVER_H
#define CRCR_CTL_REDELIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../common/base/err.h"

/* All but the first two is 0 at first, and the functions' own. */
struct redeliver_loop {
    int64_t look_ms;     /* how far back at most */
    int64_t every_ms;    /* between rounds at most */
    int64_t start_ms;    /* of the round */
    bool sweeps;         /* it looks back all of look_ms */
    int64_t complete_ms; /* start of the last one that left nothing */
    int64_t swept_ms;    /* start of the last one that swept and came to its end */
    int64_t pause_ms;    /* after the last one, if it left something */
};

/* From which moment the round looks that begins at now_ms: a little before the last one that left
 * nothing began, but all of look_ms once a day, and until there is one. */
int64_t redeliver_loop_begin(struct redeliver_loop *loop, int64_t now_ms);
/* How long to wait after the round, which ended with err and in which so many payloads failed.
 * After one that left something 30 s, then twice as long each time, at most every_ms. */
int64_t redeliver_loop_end(struct redeliver_loop *loop, enum err err, size_t failed);

#endif
