/* Which records a `crcrctl replay` writes again, and as what. A replay has an id; each record that
 * it wrote says so (`replay`) and from where (`replay_of`), so that the same replay can be
 * continued, and so that a replay is never replayed itself. PURE but for the verb. */
#ifndef CRCR_CTL_REPLAY_H
#define CRCR_CTL_REPLAY_H

#include "../../common/io/topic_reader.h"
#include "../../common/model/limits.h"
#include "dlq.h"

/* What is wanted; empty text and 0 want everything. */
struct replay_filter {
    struct str delivery;
    int64_t pr;
    int64_t since_ms, until_ms; /* of writing, wall clock; until is not among them */
};

struct replay;

/* id: of this replay. events: a delivery that was stored more than once is replayed once. */
struct replay *replay_new(const struct replay_filter *filter, struct str id, bool events);
void replay_free(struct replay *r);
/* A record of the topic, in order within its partition; all of them before the first question. */
void replay_add(struct replay *r, const struct record *record);
/* How many are to be written, and how many the same replay has written before. */
size_t replay_todo(struct replay *r, size_t *done_before);
/* True when it is one of them; then it is not any more. */
bool replay_take(struct replay *r, const struct record *record);
/* The headers it is written with; borrows from the record. again: claims and age do not count. */
void replay_headers(const struct record *record, struct str id, bool events, bool again,
                    struct headers *to);

#endif
