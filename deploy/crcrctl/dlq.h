/* Replays and drops entries of the dead-letter queue (common/model/dlq_entry.h). A resolution is
 * written after the entry was put back and acknowledged: if crcrctl dies in between, the next run
 * puts it back once more; claims make that harmless for dispatches. PURE. */
#ifndef CRCR_CTL_DLQ_H
#define CRCR_CTL_DLQ_H

#include "../../common/base/buf.h"
#include "../../common/base/table.h"
#include "../../common/io/topic_reader.h"
#include "../../common/model/dlq_entry.h"
#include "../../common/model/limits.h"
#include "../../common/model/topics.h"

struct dlq_position dlq_position_of(const struct record *record);

/* Selects entries; empty text and 0 match everything. repo: any of the record's. */
#define DLQ_MAX_POSITIONS 1000
struct dlq_filter {
    struct str class, repo, delivery;
    struct str source; /* with or without the prefix */
    int64_t since_ms;
    struct dlq_position positions[DLQ_MAX_POSITIONS];
    size_t n_positions;
};
bool dlq_matches(const struct dlq_filter *f, const struct topics *topics,
                 const struct dlq_entry *entry);

/* Where an entry goes back to, and its headers there: the original ones, attempt 1, without those
 * of the queue or a delay, and with `dlq` (its offset in the queue, for trace). ERR_REFUSE: its
 * topic takes nothing back (a row of `results` could replace a newer one), or only a part of it was
 * kept. Strings are borrowed from the record. */
enum err dlq_unpark(const struct topics *topics, const struct record *record, enum topic *target,
                    struct headers *to, struct why *why) MUST_CHECK;
/* The headers of an entry's resolution: those that identify it, `resolves` and `class`. */
void dlq_resolution_headers(const struct record *record, enum dlq_state state, int64_t now_ms,
                            struct headers *to);

#endif
