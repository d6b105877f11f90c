/* What GitHub remembers of the App's webhooks: attempts, grouped by delivery (GUID), and which of
 * these were never received. https://docs.github.com/en/rest/apps/webhooks PURE.
 *
 *   attempt 2xx ──▶ delivered        not answered yet ──▶ pending (the next run looks again)
 *   none of ours ─▶ skipped          in `events` already ──▶ stored
 *   all else ─────▶ missing ──▶ published, skipped or failed */
#ifndef CRCR_CTL_DELIVERIES_H
#define CRCR_CTL_DELIVERIES_H

#include "../../common/base/table.h"
#include "../../common/model/event.h"

enum delivery_state {
    DELIVERY_MISSING,
    DELIVERY_DELIVERED,
    DELIVERY_PENDING,
    DELIVERY_STORED,
    DELIVERY_PUBLISHED,
    DELIVERY_SKIPPED,
    DELIVERY_FAILED,
    DELIVERY_STATES,
};

struct delivery {
    struct str guid;
    int64_t id; /* of its newest attempt: each has the payload */
    int64_t first_ms;
    bool has_first; /* the first attempt (no redelivery) was seen */
    enum event_kind kind;
    enum delivery_state state;
    const char *skipped; /* SKIPPED: why, a literal */
};

struct deliveries {
    struct table by_guid; /* of struct delivery */
    size_t attempts;
    size_t n_malformed; /* malformed GUIDs: skipped */
};

void deliveries_init(struct deliveries *d);
void deliveries_clear(struct deliveries *d);
/* Adds one page of GET /app/hook/deliveries, newest first. *older: an attempt before since_ms was
 * reached; it and those after it are left out, and no further page is needed. ERR_REFUSE: the page
 * is malformed. */
enum err deliveries_add(struct deliveries *d, struct str page, int64_t since_ms, int64_t now_ms,
                        bool *older, struct why *why) MUST_CHECK;
/* Delivered ones count as missing, too: for a Kafka that lost what was answered with 2xx. */
void deliveries_doubt(struct deliveries *d);
/* NULL: unknown. */
struct delivery *deliveries_find(const struct deliveries *d, struct str guid);
/* Those in state MISSING, oldest first; *ret is the caller's to free, its elements are not. */
size_t deliveries_missing(const struct deliveries *d, struct delivery ***ret);
size_t deliveries_count(const struct deliveries *d, enum delivery_state state);
/* "12 deliveries (13 attempts): 9 delivered, …, 2 skipped (other_event 2), 0 failed". */
void deliveries_sum(const struct deliveries *d, bool dry_run, struct buf *to);

#endif
