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
/* How long to wait after a round that left something, when the pause before it was so long (0: it
 * is the first such round): 30 s, then twice as long each time, at most every_ms. */
int64_t redeliver_pause(int64_t before_ms, int64_t every_ms);
/* From which moment a round of the loop looks that begins at now_ms: a little before the one began
 * that left nothing (whole_ms), but once a day, since one began that looked back all of look_ms and
 * came to its end (swept_ms), and until there is one, all of look_ms. 0: there was none yet. */
int64_t redeliver_since(int64_t now_ms, int64_t look_ms, int64_t whole_ms, int64_t swept_ms);

#endif
