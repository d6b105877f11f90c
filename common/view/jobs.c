#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "../model/ids.h"
#include "../model/which_jobs.h"
#include "indexes.h"
#include "keys.h"

extern const char view_fold_lua[];
/* It remembers its SHA, and that memory is not locked. */
static _Thread_local struct redis_script fold_script = { .source = view_fold_lua };

#define SELF_RUN       "run:" /* no delivery has a colon */
#define FOLD_KEYS      12
#define FOLD_ARGS      15 /* before the fields; fold.lua names them */
#define RANK_SIZE      32
/* A run that reports all the time is counted once in so many milliseconds. */
#define TALLY_AFTER_MS 5000

static const char *const verdict_names[] = {
    [FOLD_RAISE] = "raise",
    [FOLD_REPEAT] = "repeat",
    [FOLD_FILL] = "fill",
    [FOLD_FULL] = "full",
};

const char *fold_verdict_name(enum fold_verdict verdict)
{
    return verdict_names[verdict];
}

static void self_run_put(struct buf *to, const struct result_record *job)
{
    buf_puts(to, SELF_RUN);
    key_part(to, str_of(job->run_id));
}

/* How a rank begins: the higher state wins, then what came first (fold/merge.lua). */
static struct str rank_begin(char to[RANK_SIZE], enum job_state state, int64_t received_ms)
{
    snprintf(to, RANK_SIZE, "%d%013" PRId64, (int)state, 9999999999999 - received_ms);
    return str_of(to);
}

/* Which groups a fact has, as bits, from 'a' on. */
static uint32_t groups_of(const struct result_field *fields, size_t n)
{
    uint32_t groups = 0;
    for (size_t i = 0; i < n; i++)
        if (fields[i].value.ptr && fields[i].group >= 'a')
            groups |= 1U << (fields[i].group - 'a');
    return groups;
}

static void groups_put(struct buf *to, uint32_t groups)
{
    buf_putc(to, '=');
    for (int i = 0; i <= 'z' - 'a'; i++)
        if (groups >> i & 1)
            buf_putc(to, (char)('a' + i));
}

/* "<rank>=<letters of its groups>": a fact's rank ends in a digest of its values (FNV-1a), which
 * decides between those of the same millisecond. */
static void ranks_put(struct buf *to, const struct result_record *fact, uint32_t groups,
                      const struct result_field *fields, size_t n)
{
    char rank[RANK_SIZE], digest[9];
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < fields[i].value.len; k++)
            hash = (hash ^ (unsigned char)fields[i].value.ptr[k]) * 16777619;
        hash = (hash ^ (uint32_t)i) * 16777619; /* where one value ends */
    }
    snprintf(digest, sizeof(digest), "%08" PRIx32, hash);
    buf_put(to, rank_begin(rank, fact->state, fact->first_ms));
    buf_puts(to, digest);
    groups_put(to, groups);
}

/* When it says that its run had started: the start of a job of attempt 1. -1: it does not. */
static int64_t run_start_of(const struct result_record *fact)
{
    int64_t start = fact->run_started_ms, job = fact->in_progress_ms;
    bool first = strcmp(fact->run_attempt, "1") == 0;
    return first && job >= 0 && (start < 0 || job < start) ? job : start;
}

/* With its first_ms and last_ms; is_fact: not a merged record. */
static enum err fold_queue(struct redis *r, const struct result_record *fact, bool is_fact,
                           const struct view_times *times, struct why *why)
{
    struct result_field fields[RESULT_FIELDS_MAX];
    struct str argv[FOLD_KEYS + FOLD_ARGS + 2 * RESULT_FIELDS_MAX];
    struct str repo = str_of(fact->repo), delivery = str_of(fact->delivery_id);
    struct buf CLEANUP(buf_clear) run = BUF_INIT(VIEW_KEY_MAX);
    struct buf CLEANUP(buf_clear) ranks = BUF_INIT(RESULT_RANKS_MAX);
    char letters[RESULT_FIELDS_MAX];
    bool self = result_record_is_self(fact);
    size_t n_fields = result_record_fields(fact, fields), n_letters = 0, n = 0;
    uint32_t groups = groups_of(fields, n_fields);
    int64_t start_ms = run_start_of(fact);

    self_run_put(&run, fact);
    if (is_fact) {
        ranks_put(&ranks, fact, groups, fields, n_fields);
    } else if (fact->ranks) {
        buf_puts(&ranks, fact->ranks);
    } else { /* any fact beats it */
        buf_putc(&ranks, '0');
        groups_put(&ranks, groups);
    }
    argv[n++] = key_job(NEW_KEY, str_of(fact->key));
    argv[n++] = self ? key_self(NEW_KEY, delivery) : key_delivery(NEW_KEY, delivery);
    argv[n++] = key_repo(NEW_KEY, repo, "");
    argv[n++] = STR_LIT(KEY_REPOS);
    argv[n++] = STR_LIT(KEY_OVERDUE);
    argv[n++] = self ? key_selfrun(NEW_KEY, buf_str(&run), repo) /* its commit is a claim */
                : fact->head_sha ? key_head(NEW_KEY, str_of(fact->head_sha), repo)
                                 : argv[0];
    argv[n++] = !self && fact->pr_number > 0 ? key_pr(NEW_KEY, fact->pr_number) : argv[0];
    argv[n++] = key_spent(NEW_KEY, repo);
    argv[n++] = times->fence ? STR_LIT(KEY_REBUILD) : STR_LIT(KEY_EPOCH);
    argv[n++] = STR_LIT(KEY_TALLY);
    argv[n++] = STR_LIT(KEY_LEASES_TALLY);
    argv[n++] = self ? argv[0] : key_jobs(NEW_KEY, delivery, repo, str_of(fact->run_id));
    argv[n++] = str_of(job_state_name(fact->state));
    argv[n++] = STR_NUMBER(fact->first_ms);
    argv[n++] = str_of(fact->run_attempt);
    argv[n++] = STR_NUMBER(times->ttl_s);
    argv[n++] = STR_NUMBER(times->overdue_ms);
    argv[n++] = str_of(fact->key);
    argv[n++] = self ? buf_str(&run) : delivery; /* what it is counted with */
    argv[n++] = repo;
    argv[n++] = times->fence ? STR_NUMBER(times->fence) : STR_LIT("");
    argv[n++] = STR_NUMBER(fact->last_ms);
    argv[n++] = buf_str(&ranks);
    argv[n++] = is_fact ? STR_NUMBER(times->quota) : STR_LIT("");
    argv[n++] = (struct str){ letters, 0 };
    argv[n++] = start_ms >= 0 ? STR_NUMBER(start_ms) : STR_LIT("");
    argv[n++] = STR_NUMBER(clock_wall_ms() + TALLY_AFTER_MS);
    for (size_t i = 0; i < n_fields; i++) {
        char group = fields[i].group;
        bool is_known = fields[i].value.ptr;
        if (!group || !(is_known || (group >= 'a' && groups >> (group - 'a') & 1)))
            continue;
        letters[n_letters++] = group;
        argv[n++] = fields[i].name;
        argv[n++] = is_known ? fields[i].value : STR_LIT(""); /* its group has others */
    }
    argv[FOLD_KEYS + 12].len = n_letters;
    return redis_queue_script(r, &fold_script, FOLD_KEYS, n, argv, why);
}

/* The fact as it is merged: the clock of its state is when it was received. Borrows its texts. */
static struct result_record timed(const struct result_record *fact, int64_t received_ms)
{
    struct result_record one = *fact;
    one.first_ms = one.last_ms = received_ms;
    one.top_level = fact->level;
    if (fact->state == JOB_IN_PROGRESS)
        one.in_progress_ms = received_ms;
    else if (fact->state == JOB_TIMED_OUT)
        one.timed_out_ms = received_ms;
    else if (fact->state == JOB_COMPLETED)
        one.completed_ms = received_ms;
    return one;
}

enum err job_fold_queue(struct redis *r, const struct result_record *fact, int64_t received_ms,
                        const struct view_times *times, struct why *why)
{
    struct result_record one = timed(fact, received_ms);
    return fold_queue(r, &one, true, times, why);
}

enum err job_restore_queue(struct redis *r, const struct result_record *record,
                           const struct view_times *times, struct why *why)
{
    return fold_queue(r, record, false, times, why);
}

enum err job_fold_collect(struct redis *r, const struct result_record *fact, int64_t received_ms,
                          enum fold_verdict *verdict, struct result_record *ret, struct why *why)
{
    const struct redis_value *reply;
    struct result_record one = timed(fact, received_ms);
    enum err err = redis_collect(r, &reply, why);
    if (err)
        return err;
    if (reply->type != REDIS_ARRAY || reply->n % 2 != 1)
        return why_set(why, ERR_STOP, "fold.lua gave an answer that is not its own");
    for (size_t i = 0; i < sizeof(verdict_names) / sizeof(verdict_names[0]); i++)
        if (str_is(reply->items[0].text, verdict_names[i]))
            *verdict = (enum fold_verdict)i;
    result_record_copy(ret, &one);
    for (size_t i = 1; i < reply->n; i += 2) /* name, value, … */
        result_record_set(ret, reply->items[i].text, reply->items[i + 1].text);
    result_record_times(ret);
    return OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

void job_list_clear(struct job_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        result_record_clear(&list->at[i]);
    free(list->at);
    *list = (struct job_list){ NULL, 0 };
}

/* A job key has its five parts; a repo in the same set has two. */
bool is_job_key(struct str member)
{
    size_t slashes = 0;
    for (size_t i = 0; i < member.len; i++)
        slashes += member.ptr[i] == '/';
    return slashes == 4;
}

/* Adds the jobs of a set whose key begins so, in any case, until there are limit. */
static void jobs_add(struct view_index *names, const struct redis_value *set, struct str prefix,
                     size_t limit)
{
    for (size_t i = 0; i < set->n && names->n < limit; i++)
        if (is_job_key(set->items[i].text) &&
            str_eq_nocase(str_cut(set->items[i].text, prefix.len), prefix))
            view_index_add(names, set->items[i].text, 0);
}

/* Jobs whose hash has expired before its index are passed over. A name's time becomes last_ms. */
static enum err jobs_get(struct redis *r, const struct view_index *names, bool brief,
                         struct job_list *ret, struct why *why)
{
    /* HMGET key field …, or HGETALL key: the dispatcher's user of Redis may only the second. */
    struct str argv[2 + RESULT_FIELDS_MAX] = { brief ? STR_LIT("HMGET") : STR_LIT("HGETALL") };
    size_t n_fields = brief ? result_record_names(argv + 2, true) : 0;
    struct job_list list = { mem_alloc(names->n + 1, sizeof(*list.at)), 0 };
    struct redis_batch batch = { .redis = r, .why = why };
    const struct redis_value *reply;
    for (size_t i = 0; i < names->n; i++) {
        argv[1] = key_job(NEW_KEY, str_of(names->at[i].name));
        redis_batch_put(&batch, 2 + n_fields, argv);
    }
    for (size_t i = 0; (reply = redis_batch_next(&batch)); i++) {
        struct result_record *job = &list.at[list.n++];
        result_record_init(job);
        for (size_t f = 0; brief && f < reply->n; f++)
            if (reply->items[f].type == REDIS_STR)
                result_record_set(job, argv[2 + f], reply->items[f].text);
        for (size_t f = 0; !brief && f + 1 < reply->n; f += 2)
            result_record_set(job, reply->items[f].text, reply->items[f + 1].text);
        result_record_times(job);
        if (names->at[i].at_ms > 0)
            job->last_ms = names->at[i].at_ms;
        if (!job->key || !job->repo)
            result_record_clear(&list.at[--list.n]);
    }
    if (batch.err)
        job_list_clear(&list);
    else
        *ret = list;
    return batch.err;
}

static int by_name(const void *a, const void *b)
{
    const struct view_index_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* brief: as jobs_get. */
static enum err jobs_of_set(struct redis *r, struct str key, bool brief, struct job_list *ret,
                            struct why *why)
{
    const struct redis_value *reply;
    enum err err = redis_call(r, &reply, REDIS_ARGS(STR_LIT("SMEMBERS"), key), why);
    if (err)
        return err;
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    jobs_add(&names, reply, STR_LIT(""), SIZE_MAX);
    if (names.n > 0)
        qsort(names.at, names.n, sizeof(*names.at), by_name);
    return jobs_get(r, &names, brief, ret, why);
}

enum err jobs_of_head(struct redis *r, struct str sha, struct str repo, struct job_list *ret,
                      struct why *why)
{
    return jobs_of_set(r, key_head(NEW_KEY, sha, repo), false, ret, why);
}

/* with_self: and behind them those of nightly and periodic runs that name the delivery. */
static enum err names_of_delivery(struct redis *r, struct str delivery, struct str prefix,
                                  bool with_self, size_t limit, struct view_index *ret,
                                  struct why *why)
{
    const struct str keys[] = { key_delivery(NEW_KEY, delivery), key_self(NEW_KEY, delivery) };
    const struct redis_value *reply;
    enum err err = OK;
    for (size_t i = 0; !err && i <= with_self; i++) {
        err = redis_call(r, &reply,
                         REDIS_ARGS(STR_LIT("ZRANGE"), keys[i], STR_LIT("0"), STR_LIT("-1")), why);
        if (!err)
            jobs_add(ret, reply, prefix, limit);
    }
    return err;
}

static bool has_failed(const struct result_record *job)
{
    return job->failed > 0 || str_is(str_of(job->conclusion), "failure") || job_has_failed(job);
}

enum err jobs_failed_in_full(struct redis *r, const struct job_list *jobs, size_t most,
                             struct job_list *ret, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    for (size_t i = 0; i < jobs->n && names.n < most; i++)
        if (has_failed(&jobs->at[i]) && !jobs->at[i].replaced)
            view_index_add(&names, str_of(jobs->at[i].key), 0);
    return jobs_get(r, &names, false, ret, why);
}

/* Those that failed become those with all their fields; at most most. */
static enum err failed_fill(struct redis *r, size_t most, struct job_list *jobs, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) full = { NULL, 0 };
    enum err err = jobs_failed_in_full(r, jobs, most, &full, why);
    for (size_t i = 0, at = 0; !err && i < jobs->n && at < full.n; i++) {
        if (strcmp(jobs->at[i].key, full.at[at].key) != 0)
            continue;
        struct result_record brief = jobs->at[i];
        jobs->at[i] = full.at[at];
        full.at[at++] = brief; /* freed with the list */
    }
    return err;
}

enum err jobs_of_delivery(struct redis *r, struct str delivery, size_t limit, size_t full_max,
                          struct job_list *ret, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    enum err err = names_of_delivery(r, delivery, STR_LIT(""), true, limit, &names, why);
    if (!err)
        err = jobs_get(r, &names, names.n > full_max, ret, why);
    if (err || names.n <= full_max || full_max == 0)
        return err;
    err = failed_fill(r, full_max, ret, why);
    if (err)
        job_list_clear(ret);
    return err;
}

enum err jobs_of_dispatch(struct redis *r, struct str delivery, struct str repo, size_t limit,
                          struct job_list *ret, struct why *why)
{
    if (str_starts(delivery, SELF_RUN))
        return jobs_of_set(r, key_selfrun(NEW_KEY, delivery, repo), true, ret, why);
    struct buf CLEANUP(buf_clear) prefix = BUF_INIT(VIEW_KEY_MAX);
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    struct str none = STR_LIT("");
    job_key(&prefix, repo, delivery, none, none, none);
    prefix.len -= 2; /* what a job's own parts would stand between */
    enum err err = names_of_delivery(r, delivery, buf_str(&prefix), false, limit, &names, why);
    return err ? err : jobs_get(r, &names, true, ret, why);
}

enum err jobs_of_self_run_add(struct redis *r, struct job_list *jobs, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) run = { NULL, 0 };
    struct buf CLEANUP(buf_clear) name = BUF_INIT(VIEW_KEY_MAX);
    if (jobs->n == 0 || !result_record_is_self(&jobs->at[0]))
        return OK;
    struct str commit = str_of(result_record_commit(&jobs->at[0]));
    self_run_put(&name, &jobs->at[0]);
    enum err err =
        jobs_of_dispatch(r, buf_str(&name), str_of(jobs->at[0].repo), HEAD_JOBS_MAX, &run, why);
    jobs->at = mem_resize(jobs->at, jobs->n + run.n, sizeof(*jobs->at));
    for (size_t i = 0, n = jobs->n; i < run.n; i++) {
        bool passed = !str_eq(str_of(result_record_commit(&run.at[i])), commit);
        for (size_t k = 0; k < n && !passed; k++)
            passed = strcmp(run.at[i].key, jobs->at[k].key) == 0;
        if (passed)
            continue;
        jobs->at[jobs->n++] = run.at[i];
        result_record_init(&run.at[i]); /* it is theirs now */
    }
    return err;
}

enum err jobs_of_repo(struct redis *r, struct str repo, bool pulls, size_t limit,
                      struct job_list *ret, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    enum err err = index_newest(r, key_repo(NEW_KEY, repo, pulls ? "|pr" : ""), limit, &names, why);
    return err ? err : jobs_get(r, &names, true, ret, why);
}

size_t job_list_page(const struct job_list *list, int64_t before_ms, size_t limit, size_t *end)
{
    size_t begin = 0;
    while (before_ms > 0 && begin < list->n && list->at[begin].last_ms >= before_ms)
        begin++;
    *end = list->n - begin > limit ? begin + limit : list->n;
    while (*end > begin && *end < list->n && list->at[*end].last_ms == list->at[*end - 1].last_ms)
        (*end)++;
    return begin;
}

enum err jobs_of_members(struct redis *r, const struct redis_value *items, size_t n, size_t step,
                         struct job_list *ret, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) names = { NULL, 0 };
    for (size_t i = 0; i < n; i += step)
        view_index_add(&names, items[i].text, 0);
    return jobs_get(r, &names, true, ret, why);
}

enum err job_has_fact(struct redis *r, const struct result_record *fact, int64_t received_ms,
                      bool *ret, struct why *why)
{
    const struct redis_value *v;
    char rank[RANK_SIZE];
    enum err err = redis_call(r, &v,
                              REDIS_ARGS(STR_LIT("HMGET"), key_job(NEW_KEY, str_of(fact->key)),
                                         STR_LIT("ranks"), STR_LIT("run_attempt")),
                              why);
    if (err)
        return err;
    *ret = v->type == REDIS_ARRAY && v->n == 2 && v->items[0].type == REDIS_STR &&
           str_is(v->items[1].text, fact->run_attempt) &&
           str_find_str(v->items[0].text, rank_begin(rank, fact->state, received_ms)) >= 0;
    return OK;
}

enum err job_state_get(struct redis *r, struct str job_key, struct str run_attempt, bool *found,
                       enum job_state *state, char conclusion[32], struct why *why)
{
    const struct redis_value *reply;
    enum err err =
        redis_call(r, &reply,
                   REDIS_ARGS(STR_LIT("HMGET"), key_job(NEW_KEY, job_key), STR_LIT("status"),
                              STR_LIT("conclusion"), STR_LIT("run_attempt")),
                   why);
    if (err)
        return err;
    *found = reply->type == REDIS_ARRAY && reply->n == 3 && reply->items[0].type == REDIS_STR &&
             str_eq(reply->items[2].text, run_attempt);
    if (!*found)
        return OK;
    *state = job_state_of(reply->items[0].text);
    str_copy(conclusion, 32, reply->items[1].text);
    return OK;
}
