/* `crcrctl redeliver --every`: how far each round looks back, and when the next one begins. PURE
 * but for the verb beside it. */
#ifndef CRCR_CTL_REDELIVER_H
#define CRCR_CTL_REDELIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../common/base/err.h"

/* Set the first two; the others begin as 0 and belong to the functions. */
struct redeliver_loop {
    int64_t look_ms;     /* how far back at most */
    int64_t every_ms;    /* between rounds at most */
    int64_t start_ms;    /* of the round */
    bool sweeps;         /* it looks back the complete look_ms */
    int64_t complete_ms; /* start of the last round that left nothing missing */
    int64_t swept_ms;    /* start of the last complete sweep */
    int64_t pause_ms;    /* after the last round, if it left something missing */
};

/* Since when the round that begins at now_ms looks: a little before the start of the last round
 * that left nothing missing; but all of look_ms once a day, and until there was such a round. */
int64_t redeliver_loop_begin(struct redeliver_loop *loop, int64_t now_ms);
/* How long to wait after the round. err: how it ended; failed: payloads that could not be
 * published. If something is missing still: 30 s, doubled each time, at most every_ms. */
int64_t redeliver_loop_end(struct redeliver_loop *loop, enum err err, size_t failed);

#endif
