/* A record of the tier's topic in hand, with its tasks. Private to the sender.
 *
 * Each task is claimed, called and published alone. Tasks that are parked, or put back when the
 * partition is revoked, are written together: those with the same attempt, mark, reason and delay
 * topic become one record again, so that a payload is not stored once for each of a thousand
 * downstreams. */
#ifndef CRCR_DISPATCHER_TASK_RECORD_H
#define CRCR_DISPATCHER_TASK_RECORD_H

#include "sender.h"

struct task_record {
    struct sender *s;
    struct task_in_hand *tasks[TASK_REPOS_MAX]; /* NULL: it is gone */
    size_t n;
    int attempt; /* as the record came */
    bool done;   /* one is finished */
    bool listed; /* in sender.leaving */
    struct task_record *prev, *next;
};

/* NULL: unreadable, and sent to the DLQ. Else its tasks are IN_LANE, in no lane yet. */
struct task_record *task_record_take(struct sender *s, struct work *work);
/* Sends only this task to the DLQ. */
void task_record_dead(struct task_in_hand *t, const char *class);
/* t is written with the rest of its record: into a delay topic, or back to its own topic. */
void task_record_leave(struct task_in_hand *t, enum task_exit exit);
/* t is IN_LANE, was removed from its lane, and its partition is revoked. A record of which no task
 * was begun is dropped, and read again by the next owner: its order stays. Of any other, the
 * remaining tasks are written again, so that no call is made twice and attempt and mark stay: a
 * task that waits for a moment into a delay topic (too large for that: back at once), the others
 * back to their topic. A record whose partition is lost already is dropped. */
void task_record_give_back(struct task_in_hand *t);
/* Frees t, which is finished (done) or was given back; with the last one also the record. */
void task_record_end(struct task_in_hand *t, bool done);
/* Writes the remaining tasks of the records in sender.leaving. */
void task_records_finish(struct sender *s);

#endif
