#include "superseded.h"

bool superseded_by_waiting(const struct task_in_hand *t)
{
    const struct event *event = &t->task.event;
    if (!task_can_be_superseded(&t->task) || t->task.maybe_duplicate)
        return false;
    for (const struct lane_item *i = lanes_behind(&t->item); i; i = i->next) {
        const struct task *later = &((const struct task_in_hand *)i)->task;
        if (task_can_be_superseded(later) && str_eq(later->event.action, event->action) &&
            !str_eq(later->event.delivery, event->delivery) &&
            task_seq_cmp(&later->seq, &t->task.seq) > 0)
            return true;
    }
    return false;
}
