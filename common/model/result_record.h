/* A result: what is known of one job of one downstream, the row of the HUD and of ClickHouse. The
 * same value is a Redis hash (crcr:job:*) and the JSON of the topic results; one table in
 * result_record.c names the columns of both. PURE. */
#ifndef CRCR_MODEL_RESULT_RECORD_H
#define CRCR_MODEL_RESULT_RECORD_H

#include "../base/headers.h"
#include "callback.h"

/* What is longer is none of ours, and read as unknown; of failed_tests and triage_verdict it is
 * what is longer than a callback. ranks: 19 groups of fields, at most 32 bytes each. */
#define RESULT_TEXT_MAX  8192
#define RESULT_RANKS_MAX 1024

/* Text is malloc'ed and NULL when unknown. Numbers are -1 when unknown, pr_number 0. */
struct result_record {
    char *key; /* dynamoKey: job_key() of ids.h */
    enum job_state state;
    char *conclusion;
    char *repo; /* downstream */
    int64_t level;
    char *upstream_repo;
    char *event_type;
    int64_t pr_number;
    char *head_sha;
    char *delivery_id;
    char *workflow_name, *job_name, *check_run_id, *run_id, *run_attempt;
    char *run_url, *artifact_url;
    int64_t queue_ms, execution_ms; /* result_record_times computes them */
    char *started_at, *completed_at;
    int64_t total, passed, failed, skipped;
    char *failed_tests;   /* JSON array as text */
    char *triage_verdict; /* JSON object as text */
    char *environment;

    /* In the view only: the relay's own clock, and what the reporter needs besides. */
    int64_t dispatched_ms, in_progress_ms, timed_out_ms, completed_ms;
    int64_t run_started_ms;   /* when the first job of the run's attempt 1 was in progress */
    char *ended_by;           /* the job key under which its completed came, when not its own */
    int64_t failed_tests_cut; /* rows that are not in failed_tests */
    int64_t run_complete;     /* 1: the downstream said that nothing follows */
    int64_t no_conclusion;    /* 1: conclusion is failure because none was reported */
    char *issuer;             /* whose token proved it: which CI it runs on */
    int64_t top_level; /* highest tier that a fact of this attempt came with; set by the fold */
    char *ranks;       /* which fact each field came from (fold.lua) */
    int64_t first_ms, last_ms; /* when the first and the last fact of the job were received */

    /* No columns: what is worked out of several. */
    bool replaced;               /* which_jobs.h */
    struct known_failure *known; /* known_failure.h; malloc'ed, NULL when unknown */
};

void result_record_init(struct result_record *r);
/* Frees the text and leaves an initialised record. */
void result_record_clear(struct result_record *r);

/* With texts of its own; *to is initialised here. */
void result_record_copy(struct result_record *to, const struct result_record *from);

/* nightly and periodic: reported by a run that no dispatch started. */
bool result_record_is_self(const struct result_record *r);
/* Proved by GitHub Actions. */
bool result_record_is_of_actions(const struct result_record *r);
/* The upstream commit that it is of, borrowed; NULL: not known. That of a self-report is a claim:
 * whether it exists is looked up, and no check run goes by it. */
const char *result_record_commit(const struct result_record *r);
/* Proved by an issuer other than GitHub Actions: a run id of digits is none that GitHub knows. */
bool result_record_is_of_other_ci(const struct result_record *r);

/* How it ended; NULL: it has not, or without a conclusion. */
const char *result_record_conclusion(const struct result_record *r);
/* True when it has ended as it should: with success, or as canary.h says. */
bool result_record_is_successful(const struct result_record *r);

/* Text form of the fields, for a Redis hash. value may point into text of the same entry, so an
 * entry is not copied. */
struct result_field {
    struct str name;
    struct str value; /* STR_NONE when unknown */
    /* How the fold merges it. A letter: the group of fields that come from the same fact; '=': the
     * same in every fact; '<': the earliest stays; '>': the highest; 0: by a rule of its own. */
    char group;
    char text[1 + STR_NUMBER_SIZE];
};
#define RESULT_FIELDS_MAX 48
/* Strings stay borrowed from r. Gives the number of entries. */
size_t result_record_fields(const struct result_record *r,
                            struct result_field to[RESULT_FIELDS_MAX]);
/* The names of all fields; without the long texts (failed tests, verdict), which are most of the
 * bytes of a record, when brief. Gives the number of entries. */
size_t result_record_names(struct str to[RESULT_FIELDS_MAX], bool brief);
/* Sets one field by its name, '' makes it unknown; names that no column has and values that do not
 * fit are passed over, so that a newer or older program can read the same view. */
void result_record_set(struct result_record *r, struct str name, struct str value);

/* queue_ms = run started - dispatched (attempt 1 only; the same for every job of the run),
 * execution_ms = completed - in_progress; never negative; left as they are when a clock is missing.
 * started_at and completed_at, when the downstream reported none, are the relay's. */
void result_record_times(struct result_record *r);

/* What the JSON does not say and the view needs to be made anew goes into headers beside it, so
 * that the row stays what the HUD reads. Text and numbers are borrowed from r and to. */
void result_record_to_headers(const struct result_record *r, struct headers *to);
/* Takes them back; those that are absent stay as they are. */
void result_record_from_headers(struct result_record *r, const struct headers *from);

/* The columns in the order of the table in result_record.c; unknown is null; seconds have three
 * decimals. */
void result_record_to_json(const struct result_record *r, struct buf *to);
/* ERR_REFUSE: not an object, or without dynamoKey, status or downstream_repo. ret is initialised
 * here and to be cleared only after OK. */
enum err result_record_from_json(struct str json, struct result_record *ret,
                                 struct why *why) MUST_CHECK;

#endif
