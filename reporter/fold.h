/* The role fold: facts → view, and what follows from each merged record. */
#ifndef CRCR_REPORTER_FOLD_H
#define CRCR_REPORTER_FOLD_H

#include "fact.h"
#include "rebuild.h"

struct fold {
    const struct reporter *reporter;
    struct role_ctx *role;
    struct redis *redis;
    struct worker *worker;
    struct event_facts *scratch;
    struct fact *facts; /* in hand, oldest first */
    size_t n_facts;
    struct view_times times; /* the reporter's, with the quota of now */
    int64_t memory_look_ms;  /* when Redis is asked next how full it is; clock_mono_ms */
    bool redis_unavailable;
    int64_t batch_ms; /* when the batch at hand was sent to Redis; clock_boot_ms */
    struct rebuild *rebuild;
    bool consistent; /* the view, when last looked */
};

/* The key holds something else: this fact will never be taken. All other refusals (not allowed, a
 * script that this Redis does not understand) would meet every fact alike, and empty the topic into
 * the dead-letter queue: they are waited out, as no answer is. */
bool fold_is_of_this_fact(enum err err, const struct redis *redis);
/* Fills in pull request, commit and time of the dispatch of job's delivery; *found: whether there
 * is one. */
enum err fold_target_fill(struct redis *redis, struct result_record *job, bool *found,
                          struct why *why) MUST_CHECK;

/* ---- fold_publish.c: what follows from a folded fact ------------------------------------------
 */

/* Puts what follows from the fact: of a callback the merged record into results, else NULL; and
 * marks what it touches in reconcile. The fact ends when all of it is stored. */
void fold_publish(struct fold *f, struct fact *fact, const struct result_record *merged);
/* Moves the record aside, as fact->step says, and is done with it. */
void fold_park(struct fold *f, struct fact *fact);
/* The record is finished: nothing more follows from it. */
void fold_finish(struct fold *f, struct fact *fact);
/* Takes the fact off the list and frees it; its work ends otherwise. */
void fold_forget(struct fold *f, struct fact *fact);

#endif
