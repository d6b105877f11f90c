/* What /api/crcr/pipeline and /api/crcr/health say; json.md shows both. PURE: values in, text
 * out. */
#ifndef CRCR_REPORTER_WEB_PIPELINE_PUT_H
#define CRCR_REPORTER_WEB_PIPELINE_PUT_H

#include "../../common/model/budget.h"
#include "../../common/model/topics.h"
#include "dispatch_day.h"
#include "open_dlq.h"

#define PIPELINE_DLQ_SHOWN    200
#define PIPELINE_BROKEN_SHOWN 50

/* What a group has not committed of one topic, and the record that has waited longest. */
struct waiting {
    enum topic topic;
    int64_t records;
    struct record_text text; /* of the oldest, so far as it is known */
    int64_t written_ms;
    int64_t due_ms; /* in a delay topic: not before that; else 0 */
    int64_t attempt;
};
/* Takes the record over when it has waited longer than the one that is there. */
void waiting_note(struct waiting *w, const struct record *record);

/* One look at Kafka. */
struct pipeline_look {
    int64_t at_ms; /* 0: there was none yet */
    struct waiting waiting[GROUP_COUNT][GROUP_TOPICS_MAX];
    struct topic_look {
        int64_t partitions, records;
        int64_t oldest_ms, newest_ms; /* as of ends_ms; 0: there is none */
    } topics[TOPIC_COUNT];
    int64_t ends_ms;
};

/* The bucket of GitHub's budget of the account that has least of it; in tokens, -1: no limit. */
struct bucket_look {
    char account[REPO_MAX + 1];
    int64_t of, left, left_l4, left_rest;
};

struct pipeline_view {
    const struct topics *topics;
    const struct pipeline_look *look;
    const char *error; /* why there is no newer look; "" */
    int64_t now_ms;
    const struct open_dlq *dlq;     /* sorted; NULL: not read yet */
    const struct dispatch_day *day; /* likewise */
    const char *sha;                /* of the allowlist in force; "" */
    int64_t repositories;
    const char *redis_error; /* why what follows is not known; "" */
    int64_t fetched_ms;      /* the allowlist was seen complete; 0 */
    const char *refused;     /* why the newest allowlist is not in force; "" */
    struct bucket_look buckets[BUDGET_BUCKETS];
    int64_t limited_until_ms; /* GitHub asked us to wait; 0 */
};

void pipeline_put(struct buf *to, const struct pipeline_view *v);
void health_put(struct buf *to, const struct pipeline_view *v);

#endif
