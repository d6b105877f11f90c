/* GitHub's limits, what a call takes of them, and the windows in which that is counted. PURE: the
 * time is an argument.
 *
 *   requests   5,000 an hour           each call 1
 *   points       900 a minute          GET 1, any other method 5
 *   content       80 a minute,         what makes something: by configuration, since GitHub does
 * not 500 an hour           say whether dispatches and check runs count
 *
 * https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
 *
 * No minute and no hour, wherever it begins, may hold more than the limit. So what was taken counts
 * in slots of a twentieth of the window until it cannot be in any window with what is taken now:
 *
 *   taken ──life──▶ last moment it can reach GitHub ──window──▶ free again, by whole slots */
#ifndef CRCR_MODEL_BUDGET_H
#define CRCR_MODEL_BUDGET_H

#include "../base/str.h"

/* From taking to reaching GitHub: a second in a replica's hand, a second on the way. */
#define BUDGET_HAND_MS    1000
#define BUDGET_LIFE_MS    2000
#define BUDGET_SLOTS      20   /* in a window; budget.lua has the same */
#define BUDGET_MINUTE_MIN 5000 /* ms: a shorter window has not enough slots for the life */

enum budget_bucket {
    BUDGET_REQUESTS_HOUR,
    BUDGET_POINTS_MINUTE,
    BUDGET_CONTENT_MINUTE,
    BUDGET_CONTENT_HOUR,
    BUDGET_BUCKETS
};
/* Low may not take what is kept for high. */
enum budget_class { BUDGET_HIGH, BUDGET_LOW, BUDGET_CLASSES };
/* What calls are told apart by; the first three can be told to be content. */
enum budget_call {
    BUDGET_DISPATCH,
    BUDGET_CHECK_RUN, /* its creation; an update is a plain write */
    BUDGET_COMMENT,   /* the same */
    BUDGET_WRITE,
    BUDGET_READ,
    BUDGET_CALLS
};

struct budget_rules {
    int64_t limit[BUDGET_BUCKETS]; /* 0: none */
    int64_t minute_ms;             /* 60,000; tests have shorter ones. An hour is 60 of them */
    int kept_percent;              /* of each limit, for high */
    int replicas;                  /* who share the limit while Redis is away */
    bool whole_app;                /* one budget for all installations */
    bool content[BUDGET_CALLS];
};
struct budget_cost {
    int of[BUDGET_BUCKETS];
};

/* A request for budget. Either what calls times cost comes to, as many of the calls as there is
 * room for in every bucket; or nothing. The store gives at most a twentieth of what GitHub said is
 * left at once, but one: none of the last calls of GitHub's hour lapses in a hand. */
struct budget_ask {
    struct str account; /* lower case */
    bool low;
    int calls;
    struct budget_cost cost;        /* of one call */
    int64_t untold[BUDGET_BUCKETS]; /* taken meanwhile without asking: counted first */
    int64_t seen_left;              /* x-ratelimit-remaining, -1: none was seen */
    int64_t seen_limit;             /* x-ratelimit-limit; 0: none was seen */
    int64_t seen_reset_ms;          /* and for how much longer it holds */
    int64_t seen_limited_ms; /* for how much longer GitHub told us to wait; ≤ 0: it did not */
};
struct budget_grant {
    int calls;                    /* 0: refused */
    int64_t wait_ms;              /* refused: before this nothing comes free */
    enum budget_bucket bucket;    /* refused: the one that is free last */
    bool limited;                 /* refused: none of ours; GitHub told one of us to wait */
    int64_t left[BUDGET_BUCKETS]; /* for this class, after the grant; -1: no limit */
};

extern const char *const budget_bucket_names[BUDGET_BUCKETS]; /* "requests_hour" … for metrics */

/* True when at least one limit stands. */
bool budget_limits(const struct budget_rules *rules);
/* "dispatch,check_run,comment" or a part of it, or "none". False: something else is in it. */
bool budget_content_parse(struct budget_rules *rules, struct str text);
/* Which call it is, by method and path. */
enum budget_call budget_call_of(const char *method, const char *path);
struct budget_cost budget_cost_of(const struct budget_rules *rules, enum budget_call call);
/* The length of a bucket's window. */
int64_t budget_window_ms(const struct budget_rules *rules, enum budget_bucket bucket);
/* How much of a bucket may be taken in one window: of the limit, or of a replica's part; low has
 * what is kept for high taken off. Never less than cost, or such a call could never go. */
int64_t budget_cap(const struct budget_rules *rules, enum budget_bucket bucket, bool low, bool part,
                   int cost);
/* After a refusal, how much later each further call should come, so that not all come at once to be
 * refused again. */
int64_t budget_pace_ms(const struct budget_rules *rules, enum budget_bucket bucket, int64_t cap,
                       int cost);
/* "80 contents a minute" */
void budget_describe(const struct budget_rules *rules, enum budget_bucket bucket, char *to,
                     size_t size);

/* ---- windows in memory: what budget.lua does in Redis ---- */

#define BUDGET_RING 32 /* slots of a window and of the life, for BUDGET_MINUTE_MIN */
struct budget_window {
    int64_t newest; /* number of the newest slot */
    int32_t taken[BUDGET_RING];
};
/* Zeroed it is empty. */
struct budget_windows {
    struct budget_window of[BUDGET_BUCKETS];
    int64_t left, limit, reset_ms; /* what GitHub said last, as long as reset_ms is to come */
    int64_t limited_ms;            /* until then it takes nothing */
};
/* now_ms: one clock for all calls on the same windows. part: a replica's part of the limits. */
void budget_windows_ask(struct budget_windows *w, const struct budget_rules *rules,
                        const struct budget_ask *ask, bool part, int64_t now_ms,
                        struct budget_grant *ret);
/* Counts what was taken elsewhere. */
void budget_windows_add(struct budget_windows *w, const struct budget_rules *rules,
                        const struct budget_cost *cost, int calls, int64_t now_ms);
/* What still counts. */
int64_t budget_windows_taken(struct budget_windows *w, const struct budget_rules *rules,
                             enum budget_bucket bucket, int64_t now_ms);

#endif
