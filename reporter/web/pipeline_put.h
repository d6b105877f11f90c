/* The JSON of /api/crcr/pipeline and /api/crcr/health (json.md shows both). PURE: values in, text
 * out. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_PUT_H
#define CRCR_REPORTER_WEB_PIPELINE_PUT_H

#include "../../common/io/kafka.h"
#include "../../common/model/dlq_entry.h"
#include "../../common/model/topics.h"
#include "../../common/view/budget_shared.h"
#include "canary.h"
#include "dispatch_day.h"

#define PIPELINE_DLQ_SHOWN 200

/* Records of a topic: those that a group has not committed, or all. */
struct topic_look {
    bool delayed; /* a delay topic: a record waits only from its header not_before_ms on */
    int64_t partitions, records;
    /* About the records that were read; 0: none was. */
    int64_t since_ms; /* the one that has waited longest: when it was written, or its wait began */
    int64_t newest_ms;
    char *oldest; /* that one, as a JSON object */
};
void topic_look_note(struct topic_look *t, const struct record *record);

/* One look at Kafka; before the first one at_ms is 0. */
#define LOOK_ALL GROUP_COUNT /* instead of a group: all records of the topics */
struct pipeline_look {
    int64_t at_ms, ends_ms; /* ends_ms: when the topics' ends were read */
    struct topic_look of[GROUP_COUNT + 1][TOPIC_COUNT];
};
void pipeline_look_init(struct pipeline_look *look);
/* Before the next look: clears the results. Those of LOOK_ALL only with ends. */
void pipeline_look_begin(struct pipeline_look *look, bool ends);
void pipeline_look_clear(struct pipeline_look *look);
/* The members of both that only a look at Kafka changes, for pipeline_put and health_put. */
void pipeline_look_put(struct buf *pipeline, struct buf *health, const struct pipeline_look *look,
                       const struct topics *topics);

struct pipeline_view {
    const struct buf *pipeline, *health; /* of pipeline_look_put */
    const char *error;                   /* why there is no newer look; "": there is */
    int64_t looked_ms;                   /* of the last look; 0: none */
    int64_t now_ms;
    const struct dlq *dlq;          /* the open entries, newest first; NULL: not read yet */
    const struct dispatch_day *day; /* NULL: not read yet */
    bool caught_up;                 /* the allowlist below is in force; false: it is being read */
    const char *sha;                /* "": there is none */
    int64_t repositories;
    const struct canary *canary;
    const char *redis_error; /* why the members below are unknown; "": they are known */
    int64_t redis_since_ms;  /* since when Redis has not answered; 0: it does */
    int64_t fetched_ms;      /* when the allowlist was last fetched; 0: never */
    const char *refused;     /* why the newest allowlist is not in force; "" */
    const struct budget_rules *rules;
    const struct str *accounts; /* the accounts whose budget is known; none without Redis */
    const struct budget_used *used;
    size_t n_accounts;
};

void pipeline_put(struct buf *to, const struct pipeline_view *v);
void health_put(struct buf *to, const struct pipeline_view *v);

#endif
