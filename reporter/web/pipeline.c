#include "pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "../../common/base/mem.h"
#include "../../common/io/topic_admin.h"
#include "../../common/io/topic_follower.h"
#include "../../common/model/canary.h"
#include "../../common/view/epoch.h"
#include "../../common/view/indexes.h"
#include "../aggregate.h"
#include "paths.h"
#include "pipeline_put.h"

#define LOOK_MS      5000
#define LOOK_SLOW_MS 10000 /* where a look took longer than … */
#define SLOW_MS      3000
#define ENDS_MS      60000 /* how often the ends of all topics are read */
#define FIRST_MS     1000  /* what the topics have is read for so long before the first look */
#define ASK_MS       2000
#define READ_MS      5000
#define TICK_MS      200
#define TAKE_MAX     1000 /* records between two signs of life */
#define ACCOUNTS_MAX 500
#define DLQ_MAX      10000 /* 10 MB */
#define JSON_MAX     (8u << 20)

/* The topics that are read all the time. */
enum followed { OF_DLQ, OF_DISPATCHES };

struct pipeline {
    const struct reporter *reporter;
    struct role_ctx *role;
    atomic_llong *alive_ms;

    pthread_mutex_t lock; /* guards these, and day where another thread reads it */
    struct buf all, health;
    int64_t budget_until_ms;
    bool day_read; /* the topic was read up to its end */

    /* The looking thread's own. */
    struct budget_rules rules;
    struct topic_admin *admin;
    struct redis *redis;
    /* For `dlq` and for `dispatches`: records of one must not hide that the other has stalled. */
    struct topic_follower *follower[2];
    bool follows[2]; /* else Kafka has not said yet where it is */
    struct dlq open;
    struct dispatch_day *day;
    struct pipeline_look look;
    struct buf looked_all, looked_health; /* what it said when it last came to its end */
    int64_t looked_ms;                    /* when that was; 0 */
    bool failed;                          /* of the last one: Kafka did not answer */
    int64_t blind_ms;                     /* since when Redis has not; 0: it did */
    struct canary canary;
    int64_t canary_ms;        /* when it was looked at */
    struct topic_want *wants; /* of this one */
    size_t n_wants;
};

/* Whether to go on. Called between any two calls that may wait: it is also the sign of life. */
static bool goes_on(struct pipeline *p)
{
    atomic_store(p->alive_ms, clock_mono_ms());
    return !role_stopping(p->role);
}

/* ---- Kafka ----------------------------------------------------------------------------------- */

static void want(struct pipeline *p, const struct partition_lag *at, int64_t offset,
                 struct topic_look *for_whom)
{
    p->wants = mem_resize(p->wants, p->n_wants + 1, sizeof(*p->wants));
    p->wants[p->n_wants++] =
        (struct topic_want){ { at->topic, at->partition, offset }, .user = for_whom };
}

static void found(const struct record *record)
{
    topic_look_note(record->user, record);
}

/* The records that wait for the groups that read this partition. lags: the partition's entry; n
 * entries further the next group's. */
static void groups_note(struct pipeline *p, enum topic topic, const struct partition_lag *lags,
                        size_t n)
{
    for (size_t g = 0; g < GROUP_COUNT; g++) {
        const struct partition_lag *at = &lags[g * n];
        size_t n_topics;
        const enum topic *reads = topics_of_group((enum group)g, &n_topics);
        for (size_t t = 0; t < n_topics; t++) {
            struct topic_look *to = &p->look.of[g][topic];
            if (reads[t] != topic)
                continue;
            to->records += at->lag;
            if (at->lag > 0)
                want(p, at, at->end - at->lag, to);
        }
    }
}

/* The ages of the ends are read once a minute. */
static void partition_note(struct pipeline *p, enum topic topic, const struct partition_lag *at,
                           bool ages)
{
    struct topic_look *t = &p->look.of[LOOK_ALL][topic];
    t->partitions++;
    t->records += at->end - at->first;
    if (topic == TOPIC_DLQ)
        dlq_expire(&p->open, at->partition, at->first);
    if (!ages || at->end == at->first)
        return;
    want(p, at, at->first, t);
    want(p, at, at->end - 1, t);
}

static enum err look_at_kafka(struct pipeline *p, struct why *why)
{
    struct pipeline_look *look = &p->look;
    struct partition_lag *lags;
    const char *names[TOPIC_AUDIT], *groups[GROUP_COUNT];
    size_t n;
    for (size_t t = 0; t < TOPIC_AUDIT; t++)
        names[t] = p->reporter->topics.name[t];
    for (size_t g = 0; g < GROUP_COUNT; g++)
        groups[g] = p->reporter->topics.group[g];
    enum err err =
        topic_admin_lag(p->admin, groups, GROUP_COUNT, names, TOPIC_AUDIT, &lags, &n, why);
    if (err)
        return err;
    int64_t now_ms = clock_wall_ms();
    bool ages = now_ms - look->ends_ms >= ENDS_MS;
    pipeline_look_begin(look, ages);
    p->n_wants = 0;
    for (size_t i = 0; i < n; i++) {
        enum topic topic = topics_find(&p->reporter->topics, str_of(lags[i].topic));
        partition_note(p, topic, &lags[i], ages);
        groups_note(p, topic, &lags[i], n);
    }
    if (goes_on(p))
        err = topic_admin_read(p->admin, p->wants, p->n_wants, READ_MS, found, why);
    free(lags);
    if (err)
        return err;
    look->at_ms = now_ms;
    look->ends_ms = ages ? now_ms : look->ends_ms;
    return OK;
}

/* ---- the two topics -------------------------------------------------------------------------- */

/* Starts the follower, or a new one where librdkafka no longer reads. */
static enum err follow_one(struct pipeline *p, enum followed one, struct why *why)
{
    const char *topic = p->reporter->topics.name[one == OF_DLQ ? TOPIC_DLQ : TOPIC_DISPATCHES];
    const int64_t from = one == OF_DLQ ? FOLLOW_BEGINNING : clock_wall_ms() - DISPATCH_DAY_MS;
    const struct topic_follower_options options = {
        .kafka = p->reporter->kafka, .topics = &topic, .n_topics = 1, .from = &from, .once = true
    };
    if (p->follows[one] && topic_follower_stalled(p->follower[one], why)) {
        topic_follower_free(p->follower[one]);
        p->follower[one] = NULL;
        p->follows[one] = false;
    }
    if (p->follows[one] || !goes_on(p))
        return OK;
    if (one == OF_DLQ) {
        dlq_clear(&p->open);
        p->open.more = false;
    } else {
        pthread_mutex_lock(&p->lock);
        dispatch_day_free(p->day);
        p->day = dispatch_day_new();
        p->day_read = false;
        pthread_mutex_unlock(&p->lock);
    }
    enum err err = topic_follower_start(&p->follower[one], &options, why);
    p->follows[one] = !err;
    return err;
}

static enum err topics_follow(struct pipeline *p, struct why *why)
{
    enum err err = follow_one(p, OF_DLQ, why);
    return err ? err : follow_one(p, OF_DISPATCHES, why);
}

static bool is_read(const struct pipeline *p, enum followed one)
{
    return p->follows[one] && topic_follower_caught_up(p->follower[one]);
}

/* Takes the records that have come. True: there may be more. */
static bool records_take(struct pipeline *p)
{
    const struct record *record;
    struct outcome outcome;
    size_t n = 0;
    for (; p->follows[OF_DLQ] && n < TAKE_MAX; n++) {
        if (!(record = topic_follower_next(p->follower[OF_DLQ], 0)))
            break;
        dlq_add(&p->open, (struct dlq_position){ record->at.partition, record->at.offset },
                record->timestamp_ms, record->key, &record->headers);
    }
    for (; p->follows[OF_DISPATCHES] && n < TAKE_MAX; n++) {
        if (!(record = topic_follower_next(p->follower[OF_DISPATCHES], 0)))
            break;
        if (outcome_from_json(record->value, &outcome, NULL))
            continue;
        pthread_mutex_lock(&p->lock);
        dispatch_day_add(p->day, &outcome, clock_wall_ms());
        pthread_mutex_unlock(&p->lock);
    }
    return n == TAKE_MAX;
}

/* ---- a look ---------------------------------------------------------------------------------- */

/* The accounts with a budget: the owners of the upstream and of all listed repositories. */
static size_t accounts_of(const struct pipeline *p, const struct allowlist *list, struct str *ret)
{
    size_t n = 0, n_listed = list ? allowlist_size(list) : 0;
    if (p->rules.one_for_the_app) {
        ret[0] = STR_LIT("*");
        return 1;
    }
    for (size_t i = 0; i <= n_listed && n < ACCOUNTS_MAX; i++) {
        struct str owner = i ? allowlist_at(list, i - 1)->repo : str_of(p->reporter->upstream_repo);
        size_t known = 0;
        owner.len = (size_t)str_find(owner, '/');
        while (known < n && !str_eq_nocase(ret[known], owner))
            known++;
        if (known == n)
            ret[n++] = owner;
    }
    return n;
}

/* Once a minute. */
static enum err canary_look(struct pipeline *p, const struct allowlist *list, int64_t now_ms,
                            struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    if (now_ms - p->canary_ms < ENDS_MS)
        return OK;
    enum err err = jobs_of_repo(p->redis, STR_LIT(CANARY_REPO), false, CANARY_JOBS, &jobs, why);
    if (err)
        return err;
    jobs_mark_replaced(jobs.at, jobs.n);
    canary_from_jobs(&p->canary, jobs.at, jobs.n, !!allowlist_find(list, STR_LIT(CANARY_REPO)));
    p->canary_ms = now_ms;
    if (p->canary.result_ms)
        metrics_set(role_metrics(p->role), METRIC_CANARY_RESULT, NULL,
                    (double)p->canary.result_ms / 1000);
    return OK;
}

/* The upstream's account is the first. */
static int64_t budget_until(const struct budget_rules *rules, const struct budget_used *used,
                            int64_t now_ms)
{
    int64_t wait_us = used->limited_us;
    for (enum budget_bucket b = 0; b < BUDGET_BUCKETS; b++) {
        int64_t us = budget_refill_us(rules, b, BUDGET_AGGREGATE, used->used_us[b]);
        wait_us = us > wait_us ? us : wait_us;
    }
    return wait_us > 0 ? now_ms + wait_us / 1000 : 0;
}

static void render(struct pipeline *p)
{
    bool caught_up = allowlist_feed_caught_up(p->reporter->feed); /* before: what follows is so */
    const struct allowlist_version *version = allowlist_feed_get(p->reporter->feed);
    struct str accounts[ACCOUNTS_MAX];
    struct budget_used used[ACCOUNTS_MAX];
    size_t n = accounts_of(p, version->list, accounts);
    char refused[ALLOWLIST_NOTE_MAX] = "";
    int64_t epoch = 0;
    struct why why;
    struct pipeline_view view = {
        .pipeline = &p->looked_all,
        .health = &p->looked_health,
        .error = p->failed ? TOPICS_UNAVAILABLE : "",
        .looked_ms = p->looked_ms,
        .now_ms = clock_wall_ms(),
        .dlq = is_read(p, OF_DLQ) ? &p->open : NULL,
        .day = is_read(p, OF_DISPATCHES) ? p->day : NULL,
        .caught_up = caught_up,
        .sha = version->sha,
        .repositories = version->list ? (int64_t)allowlist_size(version->list) : 0,
        .canary = &p->canary,
        .redis_error = "",
        .refused = refused,
        .rules = &p->rules,
        .accounts = accounts,
        .used = used,
    };
    enum err err = budget_used_get(p->redis, accounts, n, used, &why);
    if (!err)
        err = allowlist_note_error(p->redis, refused, &why);
    if (!err)
        err = allowlist_note_fetched(p->redis, &view.fetched_ms, &why);
    if (!err)
        err = view_epoch_get(p->redis, &epoch, &why);
    if (!err && epoch)
        err = canary_look(p, version->list, view.now_ms, &why);
    if (err && !p->blind_ms)
        log_warn("pipeline_not_seen", LOG_STR("error", str_of(why.text)));
    p->blind_ms = !err ? 0 : p->blind_ms ? p->blind_ms : view.now_ms;
    view.redis_since_ms = p->blind_ms;
    if (err || !epoch)
        view.redis_error = err ? VIEW_UNAVAILABLE : VIEW_REBUILT;
    if (!err)
        view.n_accounts = n;
    dlq_sort(&p->open, true);
    pthread_mutex_lock(&p->lock);
    buf_reset(&p->all);
    buf_reset(&p->health);
    pipeline_put(&p->all, &view);
    health_put(&p->health, &view);
    p->day_read = !!view.day;
    p->budget_until_ms = err ? 0 : budget_until(&p->rules, &used[0], view.now_ms);
    pthread_mutex_unlock(&p->lock);
    allowlist_feed_release(p->reporter->feed, version);
}

static void look_once(struct pipeline *p)
{
    struct why why = { "" };
    enum err err = topics_follow(p, &why);
    if (!err && goes_on(p))
        err = look_at_kafka(p, &why);
    if (err && !p->failed)
        log_warn("pipeline_not_seen", LOG_STR("error", str_of(why.text)));
    if (!err && p->failed)
        log_info("pipeline_seen", LOG_STR("role", STR_LIT("web")));
    if (!err) {
        buf_reset(&p->looked_all);
        buf_reset(&p->looked_health);
        pipeline_look_put(&p->looked_all, &p->looked_health, &p->look, &p->reporter->topics);
        p->looked_ms = p->look.at_ms;
    }
    p->failed = !!err;
    if (goes_on(p))
        render(p);
}

void pipeline_run(struct pipeline *p)
{
    struct why why;
    int64_t wait_ms = FIRST_MS, until_ms;
    (void)topics_follow(p, &why); /* what is wrong is wrong at the look, too */
    while (goes_on(p)) {
        for (until_ms = clock_mono_ms() + wait_ms; goes_on(p) && clock_mono_ms() < until_ms;)
            if (!records_take(p))
                wake_wait(role_wake(p->role), TICK_MS);
        int64_t began_ms = clock_mono_ms();
        if (goes_on(p))
            look_once(p);
        wait_ms = clock_mono_ms() - began_ms > SLOW_MS ? LOOK_SLOW_MS : LOOK_MS;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err pipeline_new(struct pipeline **ret, const struct reporter *reporter, struct role_ctx *role,
                      struct why *why)
{
    struct pipeline *p = mem_alloc(1, sizeof(*p));
    p->reporter = reporter;
    p->role = role;
    p->open.open_max = DLQ_MAX;
    p->day = dispatch_day_new();
    pipeline_look_init(&p->look);
    buf_init(&p->all, JSON_MAX);
    buf_init(&p->health, JSON_MAX);
    buf_init(&p->looked_all, JSON_MAX);
    buf_init(&p->looked_health, JSON_MAX);
    pipeline_look_put(&p->looked_all, &p->looked_health, &p->look, &reporter->topics);
    pthread_mutex_init(&p->lock, NULL);
    enum err err = config_budget(role_config(role), &p->rules, why);
    if (!err)
        err = topic_admin_new(&p->admin, &reporter->kafka, ASK_MS, why);
    if (!err)
        err = redis_new(&p->redis, &reporter->redis, why);
    if (err) {
        pipeline_free(p);
        return err;
    }
    p->alive_ms = daemon_watch(role_daemon(role), "pipeline");
    *ret = p;
    return OK;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    topic_follower_free(p->follower[OF_DLQ]);
    topic_follower_free(p->follower[OF_DISPATCHES]);
    topic_admin_free(p->admin);
    redis_free(p->redis);
    dlq_clear(&p->open);
    dispatch_day_free(p->day);
    buf_clear(&p->all);
    buf_clear(&p->health);
    buf_clear(&p->looked_all);
    buf_clear(&p->looked_health);
    pthread_mutex_destroy(&p->lock);
    pipeline_look_clear(&p->look);
    free(p->wants);
    free(p);
}

void pipeline_get(struct pipeline *p, bool health, struct buf *to)
{
    pthread_mutex_lock(&p->lock);
    buf_put(to, buf_str(health ? &p->health : &p->all));
    pthread_mutex_unlock(&p->lock);
}

void pipeline_dispatches_put(struct pipeline *p, struct str repo, int64_t heard_ms,
                             int64_t silent_ms, struct buf *to)
{
    pthread_mutex_lock(&p->lock);
    dispatch_day_put_one(to, p->day_read ? p->day : NULL, repo, heard_ms, silent_ms,
                         clock_wall_ms());
    pthread_mutex_unlock(&p->lock);
}

int64_t pipeline_budget_until(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    int64_t until_ms = p->budget_until_ms;
    pthread_mutex_unlock(&p->lock);
    return until_ms > clock_wall_ms() ? until_ms : 0;
}
