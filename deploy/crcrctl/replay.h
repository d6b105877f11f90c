/* Which records a `crcrctl replay` writes again, and as what. A replay has an id; each record that
 * it wrote says so (`replay`) and from where (`replay_of`), so that a replay is never replayed
 * itself. One that was ended begins anew under its id (--resume): for the claims of --again that is
 * the same replay, and what it wrote before is not sent again. PURE but for the verb. */
#ifndef CRCR_CTL_REPLAY_H
#define CRCR_CTL_REPLAY_H

#include "../../common/base/table.h"
#include "../../common/io/topic_reader.h"
#include "../../common/model/limits.h"
#include "dlq.h"

/* What is wanted; empty text and 0 want everything. */
struct replay_filter {
    struct str delivery;
    int64_t pr;
    int64_t since_ms, until_ms; /* of writing, wall clock; until is not among them */
    bool events;                /* a delivery that was stored more than once is replayed once */
    struct table seen; /* of events, for that: to be cleared before each pass and at the end */
};

/* True when this record is to be written again. Asked of each, in order within its partition. */
bool replay_wants(struct replay_filter *f, const struct record *record);
/* The headers it is written with; borrows from the record. again: claims and age do not count. */
void replay_headers(const struct record *record, struct str id, bool events, bool again,
                    struct headers *to);

#endif
