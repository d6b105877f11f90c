/* Records that the brokers have not acknowledged yet; each is written again until they have.
 * Private to the worker. One thread. */
#ifndef CRCR_WORKER_POSTBOX_H
#define CRCR_WORKER_POSTBOX_H

#include "../io/topic_writer.h"
#include "worker.h"

struct postbox;

/* A record of owner is stored, or its failed() returned true. Called from postbox_turn and
 * postbox_flush only. */
typedef void postbox_reported_fn(void *owner);

/* not_stored is the metric family (label topic) that counts failures. */
enum err postbox_new(struct postbox **ret, const struct topic_writer_options *writer,
                     const struct topics *topics, struct metrics *metrics, size_t not_stored,
                     postbox_reported_fn *reported, struct why *why) MUST_CHECK;
/* Records that are not stored yet are not reported. NULL is fine. */
void postbox_free(struct postbox *o);
/* For start-up checks and for topic_writer_fatal. */
struct topic_writer *postbox_writer(struct postbox *o);

/* owner NULL: the record is not reported. */
void postbox_put(struct postbox *o, const struct post *post, void *owner);
/* Serves reports, and writes records again a second after they failed. */
void postbox_turn(struct postbox *o);
/* Records not stored yet, and the bytes of their keys, values and headers. */
size_t postbox_pending(const struct postbox *o);
size_t postbox_pending_bytes(const struct postbox *o);
/* Turns until all is stored or timeout_ms have passed; true when all is. */
bool postbox_flush(struct postbox *o, int timeout_ms);

#endif
