/* One round of `crcrctl redeliver`: what GitHub could not hand to ingest is fetched from GitHub and
 * published to `events` (design.md: what GitHub failed to hand us is fetched).
 *
 *   list attempts ─▶ group by GUID ─▶ look the missing up in `events` ─▶ fetch, judge, publish
 *
 * Nothing is remembered between rounds but what is in `events`: a round that was ended in the
 * middle is simply gone on with by the next. */
#ifndef CRCR_CTL_REDELIVER_H
#define CRCR_CTL_REDELIVER_H

#include "../../common/io/topic_writer.h"
#include "../../common/model/event_rules.h"
#include "app_api.h"
#include "deliveries.h"
#include "progress.h"

struct redeliver {
    const struct ctl *ctl;
    struct app_api *api;
    struct topic_writer *writer; /* NULL in a dry run */
    struct event_rules rules;
    int64_t since_ms; /* wall clock: attempts before are not looked at */
    struct pace pace; /* of requests to GitHub */
    size_t unserved;  /* payloads in a row that GitHub did not serve */
    bool impatient;   /* it is there all the same: each of them is asked for once */
    bool dry_run;     /* prints what it would publish */
    bool all;         /* also what GitHub did hand over, when `events` does not hold it */
};

/* found: initialised; what was found and what became of it, also after an error. ERR_RETRY,
 * ERR_UNKNOWN: GitHub or Kafka does not answer, or the program is to stop. A payload that GitHub
 * does not serve fails alone; after three in a row GitHub is asked whether it is there. */
enum err redeliver_round(struct redeliver *r, struct deliveries *found, struct why *why) MUST_CHECK;

/* Round after round. All but the first two is 0 at first, and the functions' own. */
struct redeliver_loop {
    int64_t look_ms;  /* how far back at most */
    int64_t every_ms; /* between rounds at most */
    int64_t start_ms; /* of the round */
    bool sweeps;      /* it looks back all of look_ms */
    int64_t whole_ms; /* start of the last one that left nothing */
    int64_t swept_ms; /* start of the last one that swept and came to its end */
    int64_t pause_ms; /* after the last one, if it left something */
};

/* From which moment the round looks that begins at now_ms: a little before the last one that left
 * nothing began, but all of look_ms once a day, and until there is one. */
int64_t redeliver_loop_begin(struct redeliver_loop *loop, int64_t now_ms);
/* How long to wait after the round, of which redeliver_round said err and in which so many payloads
 * failed. After one that left something 30 s, then twice as long each time, at most every_ms. */
int64_t redeliver_loop_end(struct redeliver_loop *loop, enum err err, size_t failed);

#endif
