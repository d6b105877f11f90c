/* Which records `crcrctl replay` writes again, with which headers. A replay has an id. Its records
 * carry it (`replay`) and the original's offset (`replay_of`): a replay is never replayed itself.
 * One that was stopped starts again under its id (--resume): for the claims of --again it is the
 * same replay, and what it wrote before is not sent again. PURE but for the verb. */
#ifndef CRCR_CTL_REPLAY_H
#define CRCR_CTL_REPLAY_H

#include "../../common/base/table.h"
#include "../../common/io/topic_reader.h"
#include "../../common/model/limits.h"
#include "dlq.h"

/* Selects records; empty text and 0 match everything. */
struct replay_filter {
    struct str delivery;
    int64_t pr;
    int64_t since_ms, until_ms; /* when it was written, wall clock; until is exclusive */
    bool events;                /* a delivery that was stored more than once is replayed once */
    struct table seen;          /* of events, for that; clear it before each pass and at the end */
};

/* Whether to write this record again. Call it for each, in the order of its partition. */
bool replay_wants(struct replay_filter *f, const struct record *record);
/* The headers of the copy; borrows from the record. again: it ignores claims and age. */
void replay_headers(const struct record *record, struct str id, bool events, bool again,
                    struct headers *to);

#endif
