/* The role sweep: what is done because time has passed. It writes nothing itself but records. */
#ifndef CRCR_REPORTER_SWEEP_H
#define CRCR_REPORTER_SWEEP_H

#include "reporter.h"

struct sweep {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct topic_writer *writer;
    int64_t period_ms;
    int64_t next_ms;            /* the next look for jobs; monotonic clock */
    int64_t next_due_ms;        /* and for what is due */
    size_t lost_jobs, lost_due; /* not published at the last look */
    bool redis_away;
};

/* Marks commits and downstreams dirty whose time to be looked at again has come. sweep_due.c */
void sweep_due(struct sweep *s);

/* Whether the last call to Redis worked, and why not. sweep.c */
void sweep_redis_seen(struct sweep *s, bool up, const char *reason);
/* What cannot be published is not leased: others that may would find it only when the lease has run
 * out. */
bool sweep_may_write(struct sweep *s);
/* Tells how much could not be published. */
void sweep_lag(struct sweep *s);

#endif
