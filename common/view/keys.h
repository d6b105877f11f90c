/* The Redis keys. No other code knows their names, types and TTLs; deploy/redis/users says which
 * user may use them, with which commands. "crcr:" stands for the installation's prefix, which
 * follows CRCR_TOPIC_PREFIX (topics.key_prefix). The functions return keys without it: the client
 * adds it (redis_options.key_prefix), also to the KEYS of scripts. A script makes keys only from
 * its KEYS.
 *
 * Of CRCR_STATUS_TTL: a job's hash lives so long from its last change, what indexes jobs from when
 * one was last added to it.
 *
 * key                                       type    written by  read by            TTL
 *   what it holds
 * ------------------------------------------------------------------------------------------------
 * crcr:epoch                                string  reporter    all daemons        -
 *   exists while the view is consistent: the fence of the last rebuild (epoch.h), which is the time
 *   it began, in microseconds. A missing claim proves nothing about earlier times
 * crcr:rebuild                              hash    fold        fold, crcrctl      -
 *   who rebuilds: state, owner, fence, until_ms; how far it is: phase, done, total
 * crcr:claim:<delivery>|<repo>|<kind>|<run> hash    dispatcher  ingest             7 d
 *   state sending/done/unknown, owner, until_ms, pr, head_sha, dispatched_ms; level, without which
 *   older programs take it for none; outcome: HTTP status, attempt and mark of the call (JSON in
 *   older claims)
 *   |<id> follows in claims of a replay --again
 * crcr:seq:<repo>|<event key>               string  dispatcher  dispatcher         7 d
 *   last task_seq sent
 * crcr:rate:<repo>                          hash    ingest, reconcile              full, day over
 *   when its callback buckets (requests, bytes) will be full again, in us; the day
 *   (since 1970), and the bytes taken on it. |pending follows: of its pending callbacks;
 *   |commits: of the commits that reconcile asks for in its name
 * crcr:job:<job key>                        hash    fold        all daemons        CRCR_STATUS_TTL
 *   one result record; or same_as, the key of the job that this one's completed ended (fold.lua)
 * crcr:jobs:<delivery>/<repo>/<run id>      hash    fold        fold               CRCR_STATUS_TTL
 *   started_ms: when the first job of the run's attempt 1 was in progress; <job key> → its attempt,
 *   open or ended; of at most 1,000 jobs
 * crcr:dispatch:<delivery>/<repo>           hash    fold        reporter           CRCR_STATUS_TTL
 *   its most important outcome, and the earliest time of the call (dispatched_ms, unknown_ms)
 * crcr:sent:<sha>/<repo>                    zset    fold        reconcile          CRCR_STATUS_TTL
 *   deliveries that its aggregate check run may be about, by received_ms, newest 20
 * crcr:runs:<sha>/<repo>                    hash    reconcile   reconcile          CRCR_STATUS_TTL
 *   run id → what GitHub last said of that workflow run
 * crcr:due                                  zset    reconcile,  sweep              -
 *   <sha>/<repo> by when to look again               sweep
 * crcr:tally                                zset    fold,       sweep              -
 *   <delivery>/<repo> whose jobs are to be    sweep
 *   counted, by when. Of nightly and periodic runs, here and in the next, run:<run id> in place of
 *   the delivery
 * crcr:tallied:<delivery>/<repo>            string  sweep       sweep              CRCR_STATUS_TTL
 *   what its jobs have added to the two below
 * crcr:hours:<repo>|<day>                   hash    sweep       web                8 d
 *   <hour><kind>.<name of model/figures.h> → number; the day (since 1970) and the hour are UTC;
 *   kind: p of pull requests, u of pushes, n of nightly and periodic runs
 * crcr:day:<repo>|<day>                     hash    sweep       web                90 d
 *   <kind>.<name> → number: the same for the day
 * crcr:delivery:<delivery>                  zset    fold        reporter           CRCR_STATUS_TTL
 *   job keys and repos of one delivery, by time, the first 20,000
 * crcr:self:<delivery>                      zset    fold        reporter           CRCR_STATUS_TTL
 *   job keys of nightly and periodic runs, which name any delivery they like: the first 20,000
 * crcr:selfrun:run:<run id>/<repo>          set     fold        reporter           CRCR_STATUS_TTL
 *   job keys of one such run, whatever its deliveries are, at most 1,000
 * crcr:ids:<day>                            zset    fold        web                CRCR_STATUS_TTL
 *   deliveries that came on that day (since 1970) and have a dispatch, all of score 0: they are
 *   looked up by prefix
 * crcr:pr:<n>                               zset    fold        reporter           CRCR_STATUS_TTL
 *   deliveries of a pull request, by time
 * crcr:repo:<repo>                          zset    fold        reporter           CRCR_STATUS_TTL
 *   job keys of a downstream, newest 1,000. |pr follows: of pull requests alone, which levels go by
 * crcr:spent:<repo>                         hash    fold        fold               CRCR_STATUS_TTL
 *   day (since 1970) → bytes that the downstream's callbacks wrote into the view; fold.lua refuses
 *   new jobs beyond 1 GiB within the TTL. A count of writes: it depends on their order
 * crcr:repos                                zset    fold        reporter           -
 *   downstreams by last activity
 * crcr:head:<sha>/<repo>                    set     fold        reconcile, senders CRCR_STATUS_TTL
 *   job keys of a commit and downstream, at most 1,000
 * crcr:labels:<pr>                          hash    fold        reconcile, web     CRCR_STATUS_TTL
 *   updated_ms, received_ms, the ciflow/crcr labels, head commit, title and author (absent: folded
 *   by an older program)
 * crcr:prs                                  zset    fold        web                -
 *   pull requests by their newest event, newest 1,000
 * crcr:demoting                             hash    fold        reporter, crcrctl  -
 *   pull request → the repository that it demotes, while it is open and has the label
 * crcr:main                                 zset    fold        reporter, crcrctl  -
 *   commits of the upstream's default branch in the order of their pushes, newest 1,000: sha, the
 *   one before, pull request, title
 * crcr:check:<sha>/<check name>             hash    reconcile   reporter, crcrctl  CRCR_STATUS_TTL
 *   <external_id>/<attempt>/<check_run_id> → id at GitHub (0: it refused that content), 1 if
 *   completed, digest of what was sent, state at GitHub, title of an aggregate
 * crcr:comment:<pr>/<repo>                  hash    reconcile   reconcile          CRCR_STATUS_TTL
 *   id of the on-call comment at GitHub (0: there is none), digest of what was sent
 * crcr:commit:<sha>                         string  reconcile   reporter           CRCR_STATUS_TTL
 *   1 when a commit that a nightly or periodic run reported exists upstream, 0 when it does not, ?
 *   when that is being asked
 * crcr:zombies                              zset    fold, sweep sweep              -
 *   job keys in progress by deadline
 * crcr:leases:<comment, due, tally, zombies> zset   reconcile,  reconcile, sweep   -
 *   members that one replica has, by when     sweep
 *   the lease expires (lease.h). due_set, and a new fact to count, revoke it
 * crcr:budget:us:<account>                  string  dispatcher, reporter           until all full
 *   until when GitHub asked any process to wait, and when each bucket of its limits is full again,
 *   for an owner's installation (* is the entire App), in us: little-endian doubles
 * crcr:budget:us:<account>|<repo>           string  dispatcher, reporter           until full
 * crcr:budget:us:<account>|#<pr>
 *   when that downstream's or pull request's share of the account's content is full again, in us
 * crcr:allowlist                            hash    router      web                -
 *   source, sha, fetched_at, error of the last fetch
 *
 * These functions write <repo> in lower case. */
#ifndef CRCR_VIEW_KEYS_H
#define CRCR_VIEW_KEYS_H

#include "../base/str.h"

/* The longest is a job key with every byte percent-encoded: 3 times (workflow, job, check run id),
 * and the rest. */
#define VIEW_KEY_MAX 4608

struct key {
    size_t len;
    char text[VIEW_KEY_MAX + 1];
};
/* Room for one, until the end of the block that this is written in. */
#define NEW_KEY (&(struct key){ .len = 0 })

/* Each writes the key, without the prefix, into `to` (reset first) and returns it, borrowed from
 * `to`. */
/* again: the id of the `replay --again` that made the task; absent: none did. */
struct str key_claim(struct key *to, struct str delivery, struct str repo, const char *kind,
                     struct str run_id, struct str again);
struct str key_seq(struct key *to, struct str repo, struct str event_key);
struct str key_rate(struct key *to, struct str repo, const char *suffix);
struct str key_budget(struct key *to, struct str account);
struct str key_budget_share(struct key *to, struct str account, struct str downstream);
struct str key_job(struct key *to, struct str job_key);
struct str key_jobs(struct key *to, struct str delivery, struct str repo, struct str run_id);
struct str key_dispatch(struct key *to, struct str delivery, struct str repo);
struct str key_delivery(struct key *to, struct str delivery);
struct str key_self(struct key *to, struct str delivery);
struct str key_selfrun(struct key *to, struct str run, struct str repo);
struct str key_pr(struct key *to, int64_t pr);
struct str key_ids(struct key *to, int64_t day);
struct str key_repo(struct key *to, struct str repo, const char *suffix);
struct str key_spent(struct key *to, struct str repo);
struct str key_head(struct key *to, struct str sha, struct str repo);
struct str key_sent(struct key *to, struct str sha, struct str repo);
struct str key_runs(struct key *to, struct str sha, struct str repo);
struct str key_labels(struct key *to, int64_t pr);
struct str key_check(struct key *to, struct str sha, struct str name);
struct str key_comment(struct key *to, int64_t pr, struct str repo);
struct str key_commit(struct key *to, struct str sha);
struct str key_tallied(struct key *to, struct str delivery, struct str repo);
struct str key_hours(struct key *to, struct str repo, int64_t day);
struct str key_day(struct key *to, struct str repo, int64_t day);
#define KEY_DAY_MS       86400000 /* of key_ids */
#define KEY_EPOCH        "epoch"
#define KEY_REBUILD      "rebuild"
#define KEY_REPOS        "repos"
#define KEY_PRS          "prs"
#define KEY_DEMOTING     "demoting"
#define KEY_MAIN         "main"
#define KEY_OVERDUE      "zombies"
#define KEY_LEASES       "leases:"
#define KEY_LEASES_DUE   KEY_LEASES "due"
#define KEY_LEASES_TALLY KEY_LEASES "tally"
#define KEY_DUE          "due"
#define KEY_TALLY        "tally"
#define KEY_ALLOWLIST    "allowlist"

#endif
