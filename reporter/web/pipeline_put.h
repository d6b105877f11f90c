/* What /api/crcr/pipeline and /api/crcr/health say; json.md shows both. PURE: values in, text
 * out. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_PUT_H
#define CRCR_REPORTER_WEB_PIPELINE_PUT_H

#include "../../common/io/kafka.h"
#include "../../common/model/dlq_entry.h"
#include "../../common/model/topics.h"
#include "../../common/view/budget_shared.h"
#include "dispatch_day.h"

#define PIPELINE_DLQ_SHOWN 200

/* Of a topic what a group has not committed, or all that it has. */
struct topic_look {
    bool delayed; /* nothing in it waits before its header not_before_ms */
    int64_t partitions, records;
    /* Of the records that were read; 0: none was. */
    int64_t since_ms; /* the one that waits longest: written, or from when on it waits */
    int64_t newest_ms;
    char *oldest; /* that one, as a JSON object */
};
void topic_look_note(struct topic_look *t, const struct record *record);

/* One look at Kafka; before the first one at_ms is 0. */
#define LOOK_ALL GROUP_COUNT /* in the place of a group: all that the topics have */
struct pipeline_look {
    int64_t at_ms, ends_ms; /* ends_ms: when the ends of all topics were read */
    struct topic_look of[GROUP_COUNT + 1][TOPIC_COUNT];
};
void pipeline_look_init(struct pipeline_look *look);
/* For the next one: forgets what was found; of all topics only with ends what was read. */
void pipeline_look_begin(struct pipeline_look *look, bool ends);
void pipeline_look_clear(struct pipeline_look *look);
/* The members of both that only such a look changes, for pipeline_put and health_put. */
void pipeline_look_put(struct buf *pipeline, struct buf *health, const struct pipeline_look *look,
                       const struct topics *topics);

struct pipeline_view {
    const struct buf *pipeline, *health; /* of pipeline_look_put */
    const char *error;                   /* why there is no newer look; "" */
    int64_t looked_ms;                   /* of the last one; 0 */
    int64_t now_ms;
    const struct dlq *dlq;          /* what is open, the newest first; NULL: not read yet */
    const struct dispatch_day *day; /* likewise */
    bool caught_up;  /* what follows is the allowlist in force; else that is being read */
    const char *sha; /* "": there is none */
    int64_t repositories;
    const char *redis_error; /* why what follows is not known; "" */
    int64_t fetched_ms;      /* the allowlist was seen complete; 0 */
    const char *refused;     /* why the newest allowlist is not in force; "" */
    const struct budget_rules *rules;
    const struct str *accounts; /* whose budget was used how far; none without Redis */
    const struct budget_used *used;
    size_t n_accounts;
};

void pipeline_put(struct buf *to, const struct pipeline_view *v);
void health_put(struct buf *to, const struct pipeline_view *v);

#endif
