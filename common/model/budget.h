/* How our calls stay within GitHub's limits, before GitHub has to refuse one. PURE.
 *
 *   requests_hour   5,000 an hour    each call 1
 *   points_minute     900 a minute   GET 1, any other method 5
 *   content_minute     80 a minute   1, if it creates something
 *   content_hour      500 an hour    1, likewise
 *
 * What creates something is configured: GitHub does not say whether dispatches and check runs do.
 * https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
 *
 * Buckets. An account (the owner of a repo, who has one installation of the App; or the App itself)
 * has a token bucket for each limit. It holds a quarter of the limit and is refilled evenly with
 * the other three quarters, so that no window, wherever it begins, holds more than the limit:
 *
 *     capacity + refill × (window + 4 s) ≤ limit        4 s: from here to GitHub at the latest
 *
 * A bucket is one number, the moment at which it is full again (GCRA). A call moves that moment on
 * by cost ÷ refill in all buckets, or in none: it is refused until every bucket has its cost, and
 * what its class leaves. A call that needs more than a full bucket may take a full one.
 *
 * A search that a creation follows pays for both: nobody searches for what cannot be made yet.
 *
 * Classes. Each leaves a part of the capacity to those above it. So a higher class finds tokens
 * when it comes, and has all the refill until it needs no more; one that is alone has all of it
 * too.
 *
 *     aggregate   0 %   the aggregate check run; the few reads before a write
 *     l4         10 %   dispatches of L4
 *     urgent     25 %   check runs of completed jobs
 *     rest       50 %   dispatches of L1 to L3, other check runs, comments
 *
 * Fair shares. A downstream has a quarter of the content (the hour's; where that has no limit, the
 * minute's), a pull request an eighth. Who is over a share leaves 25 % more until it is within it
 * again, and 50 % more when both are. So one pull request that is pushed to all the time holds up
 * no other, not even at its own downstreams; and who is alone still has all the refill.
 *
 * GitHub's word. The limit of requests is the lower of ours and x-ratelimit-limit.
 * x-ratelimit-remaining lowers the bucket of requests, and never raises it: so that it is full by
 * x-ratelimit-reset, when GitHub gives all again. With 0 left, and while a rate limit of GitHub's
 * lasts, nothing is taken until then.
 *
 * Redis counts for all replicas (view/budget_shared.lua, the same arithmetic, by its clock). While
 * it is unavailable each process counts alone with limit ÷ replicas, without shares, and begins at
 * the level that it saw last. Redis does not hear of that: in the window in which it comes back a
 * quarter of the limit more than the limit can go out. */
#ifndef CRCR_MODEL_BUDGET_H
#define CRCR_MODEL_BUDGET_H

#include "../base/str.h"

#define BUDGET_TOKEN_WAIT_MS 1000 /* a call that is not sent by then takes again */
#define BUDGET_SEARCH_PAYS_MS                                                                      \
    2000 /* so long after a search the creation that it paid may begin                             \
          */

enum budget_bucket {
    BUDGET_REQUESTS_HOUR,
    BUDGET_POINTS_MINUTE,
    BUDGET_CONTENT_MINUTE,
    BUDGET_CONTENT_HOUR,
    BUDGET_BUCKETS
};
enum budget_class { BUDGET_AGGREGATE, BUDGET_L4, BUDGET_URGENT, BUDGET_REST, BUDGET_CLASSES };
/* The kinds of calls; configuration says which of the first three are content. */
enum budget_call {
    BUDGET_DISPATCH,
    BUDGET_CHECK_RUN, /* its creation; an update is a plain write */
    BUDGET_COMMENT,   /* the same */
    BUDGET_WRITE,
    BUDGET_READ,
    BUDGET_SEARCH, /* a read, and the creation of a check run that follows it */
    BUDGET_CALLS
};
enum budget_share { BUDGET_SHARE_DOWNSTREAM, BUDGET_SHARE_PR, BUDGET_SHARES };
extern const char *const budget_bucket_names[BUDGET_BUCKETS]; /* "requests_hour" … for metrics */
extern const char *const budget_class_names[BUDGET_CLASSES];  /* "aggregate" … */

struct budget_rules {
    int64_t limit[BUDGET_BUCKETS]; /* 0: none */
    int replicas;                  /* processes that share the limits while Redis is unavailable */
    bool one_for_the_app;          /* one budget for all installations */
    bool content[BUDGET_CALLS];
};

/* What one call asks for, in µs of each bucket's refill. */
struct budget_ask {
    struct {
        int64_t cost_us; /* 0: nothing of this bucket */
        int64_t room_us; /* the capacity less what the class leaves */
        int64_t over_us; /* so much less room for each share that is used up */
        int64_t full_us; /* the capacity */
    } of[BUDGET_BUCKETS];
    int64_t share_room_us;
    int64_t share_cost_us[BUDGET_SHARES]; /* 0: not content */
    int64_t lower_us;   /* at least so much of the requests is used, says GitHub */
    int64_t limited_us; /* for how much longer GitHub asked us to wait; 0: it did not */
};
struct budget_answer {
    int64_t wait_us;                 /* 0: taken; else nothing is free before that */
    enum budget_bucket bucket;       /* refused: the one that is free last */
    bool limited;                    /* refused: by no bucket; GitHub asked us to wait */
    int64_t used_us[BUDGET_BUCKETS]; /* until each is full again */
};

/* True when at least one limit is set. */
bool budget_limits(const struct budget_rules *rules);
/* "dispatch,check_run,comment" or a part of it, or "none". False: something else is in it. */
bool budget_content_parse(struct budget_rules *rules, struct str text);
/* Which call it is, by method and path. */
enum budget_call budget_call_of(const char *method, const char *path);
/* The rules of a process that counts alone: limit ÷ replicas, at least 1. */
struct budget_rules budget_rules_alone(const struct budget_rules *rules);
/* What such a call asks for. seen_left: x-ratelimit-remaining, for reset_us more; -1: not known. */
void budget_price(const struct budget_rules *rules, enum budget_call call, enum budget_class class,
                  int64_t seen_left, int64_t reset_us, struct budget_ask *ret);
/* How many tokens a class can have of a bucket that is full again in used_us (0 or less: it is
 * full); -1: no limit. */
int64_t budget_left(const struct budget_rules *rules, enum budget_bucket bucket,
                    enum budget_class class, int64_t used_us);
/* In how many µs the class has a token of it again; 0: it has one now, or there is no limit. */
int64_t budget_refill_us(const struct budget_rules *rules, enum budget_bucket bucket,
                         enum budget_class class, int64_t used_us);
/* "80 contents a minute", and "without Redis" where a process counts alone. */
void budget_describe(const struct budget_rules *rules, enum budget_bucket bucket, bool alone,
                     char *to, size_t size);

/* An account's buckets in memory; zeroed they are full. */
struct budget_state {
    int64_t full_us[BUDGET_BUCKETS]; /* when each is full again */
    int64_t limited_us;              /* until then GitHub asked us to wait */
};
/* Takes a call's cost, or nothing. now_us: one clock for all calls on a state. */
void budget_take(struct budget_state *state, const struct budget_ask *ask, int64_t now_us,
                 struct budget_answer *ret);

#endif
