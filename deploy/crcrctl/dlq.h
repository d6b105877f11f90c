/* What is done with entries of the dead-letter queue (common/model/dlq_entry.h). A resolution is
 * written after the entry was put back and acknowledged: who dies in between puts
 * it back once more, which claims make harmless for dispatches. PURE. */
#ifndef CRCR_CTL_DLQ_H
#define CRCR_CTL_DLQ_H

#include "../../common/base/buf.h"
#include "../../common/base/table.h"
#include "../../common/io/topic_reader.h"
#include "../../common/model/dlq_entry.h"
#include "../../common/model/limits.h"
#include "../../common/model/topics.h"

struct dlq_place dlq_place_of(const struct record *record);

/* What is wanted; empty text and 0 want everything. repo: any of the record's. */
#define DLQ_MAX_PLACES 1000
struct dlq_filter {
    struct str class, repo, delivery;
    struct str source; /* with or without the prefix */
    int64_t since_ms;
    struct dlq_place places[DLQ_MAX_PLACES];
    size_t n_places;
};
bool dlq_matches(const struct dlq_filter *f, const struct topics *topics,
                 const struct dlq_entry *entry);

/* Where an entry goes back to, and its headers there: as they were, attempt 1, without what the
 * queue or a delay added, and with `dlq` (its place here, for trace). ERR_REFUSE: it came from
 * nowhere that it could go back to (a row of `results` could take the place of a newer one), or
 * only a part of it was kept. Strings are borrowed from the record. */
enum err dlq_unpark(const struct topics *topics, const struct record *record, enum topic *target,
                    struct headers *to, struct why *why) MUST_CHECK;
/* The headers of its resolution: what identifies the entry, `resolves` and `class`. */
void dlq_resolution_headers(const struct record *record, enum dlq_state state, int64_t now_ms,
                            struct headers *to);

#endif
