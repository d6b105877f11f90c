/* A record in a few words: for a line of `tail` and a step of `trace`. PURE. */
#ifndef CRCR_CTL_SUMMARY_H
#define CRCR_CTL_SUMMARY_H

#include "../../common/base/buf.h"
#include "../../common/io/topic_reader.h"
#include "../../common/model/callback.h"
#include "../../common/model/task.h"
#include "../../common/model/topics.h"

/* Unknown text is "", unknown numbers 0; repos NULL. */
struct summary {
    enum topic topic; /* TOPIC_COUNT: none of ours */
    char topic_name[96];
    int32_t partition;
    int64_t offset;
    int64_t at_ms;       /* when it was written */
    int64_t received_ms; /* events, callbacks: when the last byte of the request came */
    char delivery[DELIVERY_MAX + 1];
    char event[80]; /* "pull_request opened" */
    int64_t pr;
    char head_sha[SHA_MAX + 1];
    char *repos; /* downstreams, comma-separated; mostly one; freed by summary_clear */
    int tier;
    char kind[16];    /* of a task and its outcome: dispatch, rerun_failed, … */
    char outcome[32]; /* one word: dispatched, in_progress, success, parked, … */
    char detail[400]; /* what explains the outcome: HTTP status, error, job, target topic */
    /* tasks and their outcomes: which of the delivery's tasks (kind, run, replay), and which try of
     * it: a repeated event has another seq. seq "": an outcome of a push; or a task replayed from
     * the DLQ, whose first try may be older than its topic keeps */
    char task[16 + RUN_ID_MAX + DELIVERY_MAX + 3];
    char seq[TASK_SEQ_TEXT_SIZE];
    int64_t attempt; /* of a task, an outcome */
    /* callbacks: the job and its state; JOB_NONE: none could be read */
    enum job_state job_state;
    char job[304]; /* "CI / linux", cut */
    char run_id[RUN_ID_MAX + 1];
    char run_attempt[RUN_ATTEMPT_MAX + 1];
    char check_run_id[RUN_ID_MAX + RUN_ATTEMPT_MAX +
                      2]; /* tells the jobs of a matrix apart, which share a name */
};

/* Reads the headers, and the value where the topic has its facts there. Never fails: what cannot be
 * read stays unknown, and detail says so. */
void summary_of(struct summary *ret, const struct topics *topics, const struct record *record);
void summary_clear(struct summary *s);
/* Parts of a line; the time of day is always there. */
enum summary_shows {
    SUMMARY_DATE = 1,     /* when lines may be days apart */
    SUMMARY_DELIVERY = 2, /* when lines may be of several deliveries */
    SUMMARY_COLOR = 4,
    SUMMARY_NARROW = 8, /* for few columns */
};
/* One readable line without a newline. */
void summary_line(struct buf *to, const struct summary *s, unsigned shows);
/* One JSON object without a newline. */
void summary_json(struct buf *to, const struct summary *s);

/* Selects records; empty text and 0 match everything. repo: any of the record's. */
struct filter {
    struct str delivery, repo;
    int64_t pr;
    int tier;
};
bool filter_matches(const struct filter *f, const struct summary *s);

#endif
