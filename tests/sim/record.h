/* The record of every request that the simulator got, in order of arrival: what tests read. */
#ifndef CRCR_SIM_RECORD_H
#define CRCR_SIM_RECORD_H

#include "call.h"

struct record;

/* path: a file to which each request is appended as one line of JSON, or NULL. keep: how many
 * requests stay in memory for /_sim/requests. */
enum err record_new(struct record **ret, const char *path, size_t keep, struct why *why) MUST_CHECK;
void record_free(struct record *r);
/* Forgets what is in memory; numbers go on, the file stays. */
void record_clear(struct record *r);
/* What was answered: a status, or a fault ("hang", "reset") instead; delay_ms until then. */
struct record_outcome {
    int status;
    const char *fault;
    int64_t delay_ms;
};
void record_add(struct record *r, const struct call *call, const struct record_outcome *outcome);
/* An array of the requests that have a number of since and more. The caller's. */
json_t *record_since(const struct record *r, int64_t since);

#endif
