/* A dispatch task: one call to GitHub for one downstream. A record of dispatch.l1…l4 holds the
 * tasks of one event for up to 16 downstreams of a tier: they differ in nothing but the repository.
 * Its key is the key of the event, its headers say the rest; the value is the webhook payload
 * fitted by the router. Which downstreams share a record means nothing: a repeated event may be
 * grouped in another way. PURE. */
#ifndef CRCR_MODEL_TASK_H
#define CRCR_MODEL_TASK_H

#include "event.h"

enum task_kind { TASK_DISPATCH, TASK_EXPAND, TASK_RERUN_FAILED, TASK_RERUN_ALL };
/* The text of the header "kind": "dispatch", "expand", "rerun_failed", "rerun_all". */
const char *task_kind_name(enum task_kind kind);

/* Order within a lane: (pull_request.updated_at in ms, events offset); text form
 * "<ms>:<partition>:<offset>". */
struct task_seq {
    int64_t updated_ms; /* 0 for events without one */
    int32_t partition;
    int64_t offset;
};
int task_seq_cmp(const struct task_seq *a, const struct task_seq *b);
#define TASK_SEQ_TEXT_SIZE (3 * STR_NUMBER_SIZE)
void task_seq_text(const struct task_seq *seq, char to[TASK_SEQ_TEXT_SIZE]);

/* Why a call may be the second one for its delivery and downstream. Once set it stays with the
 * task, also where it waits or is in the DLQ. The text is that of the header and of the outcome;
 * one that we do not know (older records hold 1 or true) reads as answer_unseen: no mark is lost.
 */
enum task_mark {
    MARK_NONE,          /* "" */
    MARK_ANSWER_UNSEEN, /* "answer_unseen": GitHub's answer to an earlier attempt did not come */
    MARK_CLAIM_EXPIRED, /* "claim_expired": another's claim was never finished */
    MARK_NO_CLAIM,      /* "no_claim": Redis was unavailable, or emptied since the event came */
};
const char *task_mark_name(enum task_mark mark);
enum task_mark task_mark_parse(struct str text);

/* Downstreams of one record; those of an expand or a re-run: one. */
#define TASK_REPOS_MAX  16
#define TASK_REPOS_SIZE (TASK_REPOS_MAX * (REPO_MAX + 1))

struct task {
    struct event event;
    struct str repo; /* downstream */
    int level;       /* 1…4 */
    enum task_kind kind;
    /* The run to repeat; what to expand: a check suite's number, or the external_id of an aggregate
     * check. Absent in a dispatch. */
    struct str run_id;
    int attempt; /* 1 the first time */
    struct task_seq seq;
    enum task_mark maybe_duplicate;
    struct str payload_trimmed; /* JSON array of what payload_fit dropped; absent when verbatim */
    struct str event_key;
};
/* Whether a later event of its pull request makes it needless. What is replayed --again is wanted
 * although it is old; it neither is superseded nor supersedes. */
bool task_can_be_superseded(const struct task *task);
/* Who the tasks of a record are for: header repos, comma-separated; of a record of before 2026-12
 * header repo. STR_NONE: neither is there. To be taken apart with str_split. */
struct str task_repos(const struct headers *headers);
/* The tasks of a record: ret is the first, the others differ in repo alone. *repos: task_repos, of
 * which each is valid. Understands the form of before 2026-12 (header repo, key
 * <downstream>|<event key>), which may be in the topics for 7 days and in the DLQ for 30.
 * ERR_REFUSE (poison): a header is missing or malformed. */
enum err task_from_record(struct task *ret, struct str *repos, struct str key,
                          const struct headers *headers, struct why *why) MUST_CHECK;
/* repos instead of task's own repo; borrowed, as all text of the task. */
void task_to_headers(const struct task *task, struct str repos, struct headers *to);

/* What became of a task: the JSON value of the dispatches topic. */
enum outcome_kind {
    OUTCOME_DISPATCHED,
    OUTCOME_UNKNOWN,
    OUTCOME_WAITING,
    OUTCOME_FAILED,
    OUTCOME_SUPERSEDED,
    OUTCOME_SKIPPED,
    OUTCOME_DUPLICATE
};
const char *outcome_kind_name(enum outcome_kind kind);
/* Why a task waits. What people read of it is the outcome's error. */
enum outcome_reason {
    REASON_NONE,    /* it does not wait, or a record of before 2026-12 */
    REASON_BREAKER, /* the downstream failed again and again: its breaker is open */
    REASON_LIMIT,   /* GitHub's rate limit, or our own budget */
    REASON_SLOW,    /* all slots of the downstream are taken */
    REASON_FAILED,  /* the call before was without effect */
    REASON_PAUSED,  /* the process was paused after it had claimed the task */
};

struct outcome {
    char delivery_id[DELIVERY_MAX + 1];
    char repo[REPO_MAX + 1];
    int level;
    char kind[16];
    char run_id[RUN_ID_MAX + 1];  /* as the task's; "" for a dispatch */
    char again[DELIVERY_MAX + 1]; /* of a replay --again; else "" */
    char source[16];              /* of the event, where it is no webhook; else "" */
    char event_type[16];
    char action[64];     /* of the event; "" when it has none, or in records of before */
    int64_t received_ms; /* of the event; 0 likewise */
    int64_t pr_number;
    char head_sha[SHA_MAX + 1];
    enum outcome_kind outcome;
    int http_status;
    int attempt;
    int64_t latency_ms; /* received → answered */
    enum outcome_reason reason;
    char error[512];
    int64_t at_ms;   /* the moment the call was sent; for others the moment it was decided */
    int64_t next_ms; /* waiting, unknown: when it is tried again; 0: not known, as in old records */
    enum task_mark maybe_duplicate;
    /* Of a dispatch for a pull request, where one supersedes another; else "", as in old records
     * and those of a replay --again. */
    char seq[TASK_SEQ_TEXT_SIZE];
    char event_key[REPO_MAX + 24];
};
void outcome_init(struct outcome *o, const struct task *task);
void outcome_to_json(const struct outcome *o, struct buf *to);
enum err outcome_from_json(struct str json, struct outcome *ret, struct why *why) MUST_CHECK;

#endif
