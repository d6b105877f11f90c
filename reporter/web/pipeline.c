#include "pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "../../common/base/mem.h"
#include "../../common/io/topic_admin.h"
#include "../../common/io/topic_follower.h"
#include "../../common/io/topic_peek.h"
#include "../../common/view/budget.h"
#include "../../common/view/indexes.h"
#include "pipeline_put.h"

#define LOOK_MS      5000
#define LOOK_SLOW_MS 10000 /* where a look took longer than … */
#define SLOW_MS      3000
#define ENDS_MS      60000 /* how often the ends of all topics are read */
#define FIRST_MS     1000  /* what the topics have is read for so long before the first look */
#define ASK_MS       2000
#define PEEK_MS      5000
#define TICK_MS      200
#define TAKE_MAX     1000 /* records between two signs of life */
#define ACCOUNTS_MAX 500
#define JSON_MAX     (4u << 20)

/* A topic that is read all the time. */
struct followed {
    const char *topic;
    struct topic_follower *follower;
    bool reads; /* else Kafka has not said yet where */
};

/* A record to be read, and what it is for. */
struct want {
    struct waiting *waiting; /* NULL: the age of an end of … */
    struct topic_look *topic;
    bool newest;
};

struct pipeline {
    const struct reporter *reporter;
    atomic_llong *alive_ms;
    atomic_bool stop;
    struct wake wake;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* guards these two */
    struct buf all, health;

    /* The thread's own. */
    struct budget_rules rules;
    struct topic_admin *admin;
    struct topic_peek *peek;
    struct redis *redis;
    struct followed dlq, dispatches;
    struct open_dlq *open;
    struct dispatch_day *day;
    struct pipeline_look *look; /* the last one that came to its end */
    struct why error;           /* of the last one; "" */
    struct want *wants;         /* of this one, and where each is */
    struct topic_position *places;
    size_t n_wants;
};

/* Whether to go on; asked between any two calls that may wait, which is the sign of life. */
static bool goes_on(struct pipeline *p)
{
    atomic_store(p->alive_ms, clock_mono_ms());
    return !atomic_load(&p->stop);
}

/* ---- Kafka ----------------------------------------------------------------------------------- */

static void want(struct pipeline *p, const struct partition_lag *at, int64_t offset,
                 struct want what)
{
    p->wants = mem_resize(p->wants, p->n_wants + 1, sizeof(*p->wants));
    p->places = mem_resize(p->places, p->n_wants + 1, sizeof(*p->places));
    p->wants[p->n_wants] = what;
    p->places[p->n_wants++] = (struct topic_position){ at->topic, at->partition, offset };
}

static void found(void *opaque, size_t i, const struct record *record)
{
    const struct pipeline *p = opaque;
    const struct want *w = &p->wants[i];
    int64_t at_ms = record->timestamp_ms;
    if (w->waiting)
        waiting_note(w->waiting, record);
    else if (w->newest && at_ms > w->topic->newest_ms)
        w->topic->newest_ms = at_ms;
    else if (!w->newest && (!w->topic->oldest_ms || at_ms < w->topic->oldest_ms))
        w->topic->oldest_ms = at_ms;
}

/* lags: n of all partitions; those of topics that the group does not read are passed over. */
static void group_note(struct pipeline *p, struct pipeline_look *look, enum group group,
                       const struct partition_lag *lags, size_t n)
{
    size_t n_topics;
    const enum topic *reads = topics_of_group(group, &n_topics);
    for (size_t t = 0; t < n_topics; t++) {
        struct waiting *w = &look->waiting[group][t];
        *w = (struct waiting){ .topic = reads[t], .text.offset = -1 };
        for (size_t i = 0; i < n; i++) {
            if (strcmp(lags[i].topic, p->reporter->topics.name[reads[t]]) != 0)
                continue;
            w->records += lags[i].lag;
            if (lags[i].lag > 0)
                want(p, &lags[i], lags[i].end - lags[i].lag, (struct want){ .waiting = w });
        }
    }
}

/* The ages of the ends are read once a minute. */
static void topics_note(struct pipeline *p, struct pipeline_look *look,
                        const struct partition_lag *all, size_t n)
{
    bool again = look->at_ms - p->look->ends_ms >= ENDS_MS;
    look->ends_ms = again ? look->at_ms : p->look->ends_ms;
    for (size_t t = 0; t < TOPIC_COUNT && !again; t++)
        look->topics[t] = (struct topic_look){ .oldest_ms = p->look->topics[t].oldest_ms,
                                               .newest_ms = p->look->topics[t].newest_ms };
    for (size_t i = 0; i < n; i++) {
        enum topic topic = topics_find(&p->reporter->topics, str_of(all[i].topic));
        struct topic_look *to = &look->topics[topic];
        to->partitions++;
        to->records += all[i].end - all[i].first;
        if (topic == TOPIC_DLQ)
            open_dlq_expire(p->open, all[i].partition, all[i].first);
        if (!again || all[i].end == all[i].first)
            continue;
        want(p, &all[i], all[i].first, (struct want){ .topic = to });
        want(p, &all[i], all[i].end - 1, (struct want){ .topic = to, .newest = true });
    }
}

static enum err look_at_kafka(struct pipeline *p, struct pipeline_look *look, struct why *why)
{
    struct partition_lag *lags;
    const char *names[TOPIC_COUNT], *groups[GROUP_COUNT];
    size_t n;
    for (size_t t = 0; t < TOPIC_COUNT; t++)
        names[t] = p->reporter->topics.name[t];
    for (size_t g = 0; g < GROUP_COUNT; g++)
        groups[g] = p->reporter->topics.group[g];
    enum err err =
        topic_admin_lag(p->admin, groups, GROUP_COUNT, names, TOPIC_COUNT, &lags, &n, why);
    if (err)
        return err;
    look->at_ms = clock_wall_ms();
    p->n_wants = 0;
    topics_note(p, look, lags, n);
    for (size_t g = 0; g < GROUP_COUNT; g++)
        group_note(p, look, (enum group)g, lags + g * n, n);
    if (goes_on(p))
        err = topic_peek_read(p->peek, p->places, p->n_wants, PEEK_MS, found, p, why);
    free(lags);
    return err;
}

/* ---- the two topics -------------------------------------------------------------------------- */

/* Begins to read it, or begins anew where librdkafka reads no further. What was read before must be
 * forgotten then: *anew. The client stays where Kafka does not answer: to free it may take long. */
static enum err follow(struct pipeline *p, struct followed *f, int64_t from_ms, bool *anew,
                       struct why *why)
{
    const struct topic_follower_options options = { .kafka = p->reporter->kafka,
                                                    .topics = &f->topic,
                                                    .n_topics = 1,
                                                    .from =
                                                        from_ms ? FOLLOW_TIME : FOLLOW_BEGINNING,
                                                    .from_ms = from_ms };
    if (f->reads && topic_follower_stalled(f->follower, why)) {
        topic_follower_free(f->follower);
        f->follower = NULL;
        f->reads = false;
    }
    *anew = !f->reads;
    if (f->reads || !goes_on(p))
        return OK;
    enum err err = f->follower ? OK : topic_follower_open(&f->follower, &options, why);
    if (!err)
        err = topic_follower_start(f->follower, &options, why);
    f->reads = !err;
    return err;
}

static enum err follow_both(struct pipeline *p, struct why *why)
{
    bool anew;
    enum err err = follow(p, &p->dlq, 0, &anew, why);
    if (anew) {
        open_dlq_free(p->open);
        p->open = open_dlq_new();
    }
    if (!err)
        err = follow(p, &p->dispatches, clock_wall_ms() - DISPATCH_DAY_MS, &anew, why);
    if (!err && anew) {
        dispatch_day_free(p->day);
        p->day = dispatch_day_new();
    }
    return err;
}

static const struct record *next_of(struct followed *f)
{
    return f->reads ? topic_follower_next(f->follower, 0) : NULL;
}

/* What has come. True when there may be more. */
static bool take(struct pipeline *p)
{
    const struct record *record;
    size_t n = 0;
    while (n < TAKE_MAX && (record = next_of(&p->dlq))) {
        open_dlq_add(p->open, record);
        n++;
    }
    while (n < TAKE_MAX && (record = next_of(&p->dispatches))) {
        struct outcome outcome;
        if (!outcome_from_json(record->value, &outcome, NULL))
            dispatch_day_add(p->day, &outcome, clock_wall_ms());
        n++;
    }
    return n == TAKE_MAX;
}

static bool is_read(const struct followed *f)
{
    return f->reads && topic_follower_caught_up(f->follower);
}

/* ---- Redis ----------------------------------------------------------------------------------- */

/* Who has a budget of their own: the owners of the upstream and of all that are listed. */
static size_t accounts_of(const struct pipeline *p, const struct allowlist *list, struct str *ret)
{
    size_t n = 0, n_listed = list && !p->rules.one_for_the_app ? allowlist_size(list) : 0;
    for (size_t i = 0; i <= n_listed && n < ACCOUNTS_MAX; i++) {
        struct str owner = i ? allowlist_at(list, i - 1)->repo : str_of(p->reporter->upstream_repo);
        size_t known = 0;
        owner.len = (size_t)str_find(owner, '/');
        if (p->rules.one_for_the_app)
            owner = STR_LIT("*");
        while (known < n && !str_eq_nocase(ret[known], owner))
            known++;
        if (known == n)
            ret[n++] = owner;
    }
    return n;
}

static void least(const struct budget_rules *rules, enum budget_bucket b, struct str account,
                  int64_t used_us, struct bucket_look *to)
{
    int64_t left = budget_left(rules, b, BUDGET_AGGREGATE, used_us);
    if (*to->account && left >= to->left)
        return;
    str_copy(to->account, sizeof(to->account), account);
    to->of = budget_left(rules, b, BUDGET_AGGREGATE, 0);
    to->left = left;
    to->left_l4 = budget_left(rules, b, BUDGET_L4, used_us);
    to->left_rest = budget_left(rules, b, BUDGET_REST, used_us);
}

static enum err look_at_redis(struct pipeline *p, const struct allowlist *list,
                              char refused[ALLOWLIST_NOTE_MAX], struct pipeline_view *ret,
                              struct why *why)
{
    struct str accounts[ACCOUNTS_MAX];
    struct budget_used used[ACCOUNTS_MAX];
    size_t n = accounts_of(p, list, accounts);
    int64_t limited_us = 0;
    enum err err = budget_used_get(p->redis, accounts, n, used, why);
    if (!err)
        err = allowlist_note_error(p->redis, refused, why);
    if (!err)
        err = allowlist_note_fetched(p->redis, &ret->fetched_ms, why);
    for (size_t i = 0; !err && i < n; i++) {
        limited_us = used[i].limited_us > limited_us ? used[i].limited_us : limited_us;
        for (enum budget_bucket b = 0; b < BUDGET_BUCKETS; b++)
            least(&p->rules, b, accounts[i], used[i].used_us[b], &ret->buckets[b]);
    }
    ret->limited_until_ms = limited_us ? clock_wall_ms() + limited_us / 1000 : 0;
    return err;
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void render(struct pipeline *p)
{
    const struct allowlist_version *version = allowlist_feed_get(p->reporter->feed);
    char refused[ALLOWLIST_NOTE_MAX] = "";
    struct why redis_why = { "" };
    struct pipeline_view view = {
        .topics = &p->reporter->topics,
        .look = p->look,
        .error = p->error.text,
        .now_ms = clock_wall_ms(),
        .dlq = is_read(&p->dlq) ? p->open : NULL,
        .day = is_read(&p->dispatches) ? p->day : NULL,
        .sha = version->sha,
        .repositories = version->list ? (int64_t)allowlist_size(version->list) : 0,
        .redis_error = redis_why.text,
        .refused = refused,
    };
    if (!look_at_redis(p, version->list, refused, &view, &redis_why))
        redis_why.text[0] = '\0';
    open_dlq_sort(p->open);
    pthread_mutex_lock(&p->lock);
    buf_reset(&p->all);
    buf_reset(&p->health);
    pipeline_put(&p->all, &view);
    health_put(&p->health, &view);
    pthread_mutex_unlock(&p->lock);
    allowlist_feed_release(p->reporter->feed, version);
}

static void look(struct pipeline *p)
{
    struct pipeline_look *fresh = mem_alloc(1, sizeof(*fresh));
    struct why why = { "" };
    enum err err = follow_both(p, &why);
    if (!err && goes_on(p))
        err = look_at_kafka(p, fresh, &why);
    if (err && !*p->error.text)
        log_warn("pipeline_not_seen", LOG_STR("error", str_of(why.text)));
    if (!err && *p->error.text)
        log_info("pipeline_seen", LOG_STR("role", STR_LIT("web")));
    if (!err)
        why.text[0] = '\0';
    p->error = why;
    free(err ? fresh : p->look);
    p->look = err ? p->look : fresh;
    if (goes_on(p))
        render(p);
}

static void *run(void *opaque)
{
    struct pipeline *p = opaque;
    struct why why;
    int64_t wait_ms = FIRST_MS, until_ms;
    (void)follow_both(p, &why); /* what is wrong is wrong at the look, too */
    while (goes_on(p)) {
        for (until_ms = clock_mono_ms() + wait_ms; goes_on(p) && clock_mono_ms() < until_ms;)
            if (!take(p))
                wake_wait(&p->wake, TICK_MS);
        int64_t began_ms = clock_mono_ms();
        if (goes_on(p))
            look(p);
        wait_ms = clock_mono_ms() - began_ms > SLOW_MS ? LOOK_SLOW_MS : LOOK_MS;
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err pipeline_new(struct pipeline **ret, const struct reporter *reporter, struct role_ctx *role,
                      struct why *why)
{
    struct pipeline *p = mem_alloc(1, sizeof(*p));
    p->reporter = reporter;
    p->wake.fd = -1;
    p->look = mem_alloc(1, sizeof(*p->look));
    p->open = open_dlq_new();
    p->day = dispatch_day_new();
    p->dlq.topic = reporter->topics.name[TOPIC_DLQ];
    p->dispatches.topic = reporter->topics.name[TOPIC_DISPATCHES];
    buf_init(&p->all, JSON_MAX);
    buf_init(&p->health, JSON_MAX);
    pthread_mutex_init(&p->lock, NULL);
    enum err err = config_budget(role_config(role), &p->rules, why);
    if (!err)
        err = topic_admin_new(&p->admin, &reporter->kafka, ASK_MS, why);
    if (!err)
        err = topic_peek_new(&p->peek, &reporter->kafka, why);
    if (!err)
        err = redis_new(&p->redis, &reporter->redis, why);
    if (!err)
        err = wake_init(&p->wake, why);
    if (!err) {
        p->alive_ms = daemon_watch(role_daemon(role), "pipeline");
        p->started = pthread_create(&p->thread, NULL, run, p) == 0;
        err = p->started ? OK : why_set(why, ERR_STOP, "no thread for the pipeline");
    }
    if (err) {
        pipeline_free(p);
        return err;
    }
    pthread_setname_np(p->thread, "pipeline");
    *ret = p;
    return OK;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    atomic_store(&p->stop, true);
    if (p->started) {
        wake_up(&p->wake);
        pthread_join(p->thread, NULL);
    }
    topic_follower_free(p->dlq.follower);
    topic_follower_free(p->dispatches.follower);
    topic_admin_free(p->admin);
    topic_peek_free(p->peek);
    redis_free(p->redis);
    wake_clear(&p->wake);
    open_dlq_free(p->open);
    dispatch_day_free(p->day);
    buf_clear(&p->all);
    buf_clear(&p->health);
    pthread_mutex_destroy(&p->lock);
    free(p->wants);
    free(p->places);
    free(p->look);
    free(p);
}

void pipeline_get(struct pipeline *p, bool health, struct buf *to)
{
    pthread_mutex_lock(&p->lock);
    buf_put(to, buf_str(health ? &p->health : &p->all));
    pthread_mutex_unlock(&p->lock);
}
