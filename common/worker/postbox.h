/* Records on their way to the brokers, each written again until it is acknowledged. Private to the
 * worker. One thread. */
#ifndef CRCR_WORKER_POSTBOX_H
#define CRCR_WORKER_POSTBOX_H

#include "../io/topic_writer.h"
#include "worker.h"

struct postbox;

/* owner's record is stored, or its failed() took it over. From postbox_turn and postbox_flush only.
 */
typedef void postbox_reported_fn(void *owner);

/* not_stored is the metric family (label topic) that counts failures. */
enum err postbox_new(struct postbox **ret, const struct topic_writer_options *writer,
                     const struct topics *topics, struct metrics *metrics, size_t not_stored,
                     postbox_reported_fn *reported, struct why *why) MUST_CHECK;
/* What is not stored is reported to nobody. NULL is fine. */
void postbox_free(struct postbox *o);
/* For start-up checks and for topic_writer_fatal. */
struct topic_writer *postbox_writer(struct postbox *o);

/* owner may be NULL: nobody waits for it. */
void postbox_put(struct postbox *o, const struct post *post, void *owner);
/* Serves reports and writes again what failed a second ago. */
void postbox_turn(struct postbox *o);
/* Not stored yet: records, and the bytes of their keys, values and headers. */
size_t postbox_pending(const struct postbox *o);
size_t postbox_pending_bytes(const struct postbox *o);
/* Turns until all is stored or timeout_ms have passed; true when all is. */
bool postbox_flush(struct postbox *o, int timeout_ms);

#endif
