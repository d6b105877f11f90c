/* A record of the tier's topic in hand: the tasks that came with it, and what is left of them when
 * none of them has anything more to do here. Private to the sender.
 *
 * Each task is claimed, called and published alone. What must wait long, or is left when the
 * partition goes, leaves together: tasks with the same attempt and mark, and that wait as long for
 * the same reason, become one record again, so that a payload is not stored once for each of a
 * thousand downstreams. */
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

/* NULL, and the record is in the DLQ: it is unreadable. Else its tasks are IN_LANE, in no lane yet.
 */
struct task_record *task_record_take(struct sender *s, struct work *work);
/* Puts t, for itself alone, into the DLQ. */
void task_record_dead(struct task_in_hand *t, const char *class);
/* What is left of t is written with the rest of its record: into a delay topic, or back to where it
 * came from. */
void task_record_leave(struct task_in_hand *t, enum task_exit exit);
/* t is IN_LANE, was taken out of it, and its partition goes. A record of which no task was begun is
 * dropped, and read again by the next owner, also where a limit made it wait: its order stays. Of
 * any other what is left leaves, so that no call is made twice and attempt and mark stay: what
 * waits until a moment into a delay topic (a record too large for that: back at once), the rest
 * back to where it came from. What is lost already is dropped. */
void task_record_give_back(struct task_in_hand *t);
/* t is finished, or was given back; frees it, and the record after the last one. done: finished. */
void task_record_end(struct task_in_hand *t, bool done);
/* Writes what is left of those records that have nothing more to do here. */
void task_records_finish(struct sender *s);

#endif
