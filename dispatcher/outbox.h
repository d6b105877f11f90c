/* Records on their way to the broker, each written again until it is acknowledged: nothing is done
 * before what became of it is stored. One thread. */
#ifndef CRCR_DISPATCHER_OUTBOX_H
#define CRCR_DISPATCHER_OUTBOX_H

#include "../common/base/metrics.h"
#include "../common/io/topic_reader.h"
#include "../common/io/topic_writer.h"
#include "../common/model/task.h"
#include "../common/model/topics.h"

struct outbox;

/* From outbox_turn and outbox_flush only. reason lives as long as the call. */
typedef void outbox_refused_fn(void *opaque, const char *reason);

struct post {
    const char *topic; /* outlives the outbox */
    int place;         /* of topic_writer_put_in; 0: the partition is chosen from the key */
    struct str key;    /* copied */
    struct str value;
    bool lasting;                  /* value stays where it is until stored: it is not copied */
    const struct headers *headers; /* copied */
    /* Called instead of done when the broker refuses it for good (too large): it is not written
     * again. NULL: it is, until it is stored. (A broker judges a whole batch; but what is larger
     * than librdkafka's batch.size, 1 MB, goes alone, and no topic of ours takes less.) */
    outbox_refused_fn *refused;
};

/* From outbox_turn and outbox_flush only. */
typedef void outbox_stored_fn(void *opaque);

/* Makes its own writer; wake is woken when reports wait. not_stored is the metric family (label
 * topic) that counts failures. */
enum err outbox_new(struct outbox **ret, const struct kafka_options *kafka, struct wake *wake,
                    struct metrics *metrics, size_t not_stored, struct why *why) MUST_CHECK;
/* What is not stored yet is lost: the records it came from were not done. NULL is fine. */
void outbox_free(struct outbox *o);
/* Failures of these topics are counted from 0 on: only so is the first an increase, which an alert
 * sees. */
void outbox_declare(struct outbox *o, const char *const *topics, size_t n);
/* For start-up checks. */
struct topic_writer *outbox_writer(struct outbox *o);

/* done(opaque) is called once it is stored, unless it is forgotten before. done may be NULL. */
void outbox_put(struct outbox *o, const struct post *post, outbox_stored_fn *done, void *opaque);
/* done and refused are not called any more for that opaque, and lasting values are not touched any
 * more. */
void outbox_forget(struct outbox *o, const void *opaque);
/* Serves reports and writes again what failed a second ago. */
void outbox_turn(struct outbox *o);
/* Not stored yet: records, and the bytes of their keys, values and headers. */
size_t outbox_pending(const struct outbox *o);
size_t outbox_pending_bytes(const struct outbox *o);
/* Turns until all is stored or timeout_ms have passed. */
void outbox_flush(struct outbox *o, int timeout_ms);
/* True when the writer is of no use any more and the process must end. */
bool outbox_fatal(struct outbox *o, struct why *why);

/* Puts a task into the topic of its tier, in its lane of event_key. value must live until stored.
 */
void outbox_task(struct outbox *o, const struct topics *topics, const struct task *task,
                 struct str event_key, struct str value, outbox_stored_fn *done, void *opaque);
/* Puts an outcome into the dispatches topic. */
void outbox_tell(struct outbox *o, const char *dispatches, const struct outcome *outcome,
                 outbox_stored_fn *done, void *opaque);
/* Puts a record into the dlq as it is, with the headers that say why (burial.h). It must live until
 * stored. */
void outbox_bury(struct outbox *o, const char *dlq, const struct record *record, const char *cls,
                 const char *error, outbox_stored_fn *done, void *opaque);

#endif
