/* The steps of one callback in their order, on one thread with its own connection to Redis. */
#ifndef CRCR_INGEST_CALLBACK_STEPS_H
#define CRCR_INGEST_CALLBACK_STEPS_H

#include "callback_route.h"

struct callback_worker {
    const struct callback_options *options;
    struct callback_rate *rate; /* shared */
    struct redis *redis;        /* this thread's */
};

/* Judges, publishes or refuses: the exchange is gone afterwards. */
void callback_steps_run(const struct callback_worker *worker, struct http_exchange *x,
                        int64_t started_us);

#endif
