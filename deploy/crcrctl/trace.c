/* `crcrctl trace`: the life of an event, from the topics and the view. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/model/known_failure.h"
#include "../../common/view/checks.h"
#include "../../common/view/comments.h"
#include "../../common/view/dispatches.h"
#include "../../common/view/known_failures.h"
#include "out.h"
#include "repos.h"
#include "scan.h"
#include "timeline.h"
#include "verbs.h"

#define TEXT_MAX  (16u << 20)
#define JOBS_MAX  1000
#define REPOS_MAX 2000
#define NAME_SIZE 2048
#define CLOCKS_MS (3600 * 1000LL) /* hosts' clocks may differ by that much */

/* ---- what the view has of a delivery -------------------------------------------------------- */

/* Written as it is read: lines, or the elements of JSON lists. */
struct view {
    bool json;
    struct str repo; /* only of it; empty: of all */
    struct redis *redis;
    struct buf states, checks, comments;
    int64_t *ids; /* of the check runs so far */
    size_t n_ids;
    struct why *why;
};

/* known: NULL where nothing is. */
static void state_put(struct view *v, const char *repo, const char *what, const char *state,
                      const struct known_failure *known)
{
    struct buf CLEANUP(buf_clear) sentence = BUF_INIT(KNOWN_SENTENCE_MAX);
    struct buf *to = &v->states;
    if (known)
        known_failure_put(&sentence, known);
    if (!v->json)
        clean_printf(to, "  %s  %s  %s%s%.*s\n", repo, what, state, known ? ": " : "",
                     STR_ARG(buf_str(&sentence)));
    else
        put_json(to, "{repo:%s what:%s state:%s known:%.*s}", repo, what, state,
                 STR_ARG(buf_str(&sentence)));
}

/* The check runs of one name on a commit whose slot begins with start. */
static enum err checks_put(struct view *v, struct str sha, const char *name, const char *start)
{
    struct check_list CLEANUP(check_list_clear) list = { NULL, 0 };
    enum err err = checks_sent_list(v->redis, sha, str_of(name), &list, v->why);
    for (size_t i = 0; !err && i < list.n; i++) {
        const struct check_sent *sent = &list.at[i].sent;
        bool known = !str_starts(str_of(list.at[i].slot), start);
        for (size_t k = 0; k < v->n_ids; k++)
            known = known || v->ids[k] == sent->id;
        if (known)
            continue;
        v->ids = mem_resize(v->ids, v->n_ids + 1, sizeof(*v->ids));
        v->ids[v->n_ids++] = sent->id;
        if (!v->json)
            clean_printf(&v->checks, "  %s  %s  id %" PRId64 "\n", name,
                         sent->completed ? "completed" : "open", sent->id);
        else
            put_json(&v->checks, "{name:%s id:%" PRId64 " completed:%i}", name, sent->id,
                     sent->completed);
    }
    return err;
}

/* One aggregate a commit and downstream, whichever delivery it was last about; one on-call comment
 * a pull request and downstream. */
static enum err dispatches_put(struct view *v, struct str delivery)
{
    struct dispatch_view *all = NULL;
    size_t n = 0;
    enum err err = dispatches_of_delivery(v->redis, delivery, REPOS_MAX, &all, &n, v->why);
    for (size_t i = 0; !err && i < n; i++) {
        char name[REPO_MAX + 8];
        if (!repos_have(str_of(all[i].repo), v->repo))
            continue;
        state_put(v, all[i].repo, "dispatch", all[i].outcome, NULL);
        FORMAT(name, "crcr/%s", all[i].repo);
        if (*all[i].head_sha)
            err = checks_put(v, str_of(all[i].head_sha), name, "");
        struct comment_sent sent = { .known = false };
        if (!err && all[i].pr)
            err = comment_sent_get(v->redis, all[i].pr, str_of(all[i].repo), &sent, v->why);
        if (err || !sent.known || !sent.id)
            continue;
        if (!v->json)
            clean_printf(&v->comments, "  %s  #%" PRId64 "  id %" PRId64 "\n", all[i].repo,
                         all[i].pr, sent.id);
        else
            put_json(&v->comments, "{repo:%s pr:%" PRId64 " id:%" PRId64 "}", all[i].repo,
                     all[i].pr, sent.id);
    }
    free(all);
    return err;
}

/* The slot of a job's check run begins with "<run_id>:<pr>/". */
static enum err jobs_put(struct view *v, struct str delivery)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct known_cache CLEANUP(known_cache_clear) known = { .repos.size = 0 };
    enum err err = jobs_of_delivery(v->redis, delivery, JOBS_MAX, 0, &jobs, v->why);
    if (!err && known_failures_mark(&known, v->redis, jobs.at, jobs.n, v->why) && !v->json)
        clean_printf(&v->states, "  known failures: not looked at: %s\n", v->why->text);
    for (size_t i = 0; !err && i < jobs.n; i++) {
        const struct result_record *job = &jobs.at[i];
        if (!repos_have(str_of(job->repo), v->repo))
            continue;
        struct buf CLEANUP(buf_clear) name = BUF_INIT(NAME_SIZE);
        char what[400], state[64], start[RUN_ID_MAX + 32];
        FORMAT(what, "%s / %s", job->workflow_name ? job->workflow_name : "?",
               job->job_name ? job->job_name : "?");
        FORMAT(state, "%s%s%s", job_state_name(job->state), job->conclusion ? " " : "",
               job->conclusion ? job->conclusion : "");
        state_put(v, job->repo, what, state, job->known);
        if (!job->head_sha || !job->workflow_name || !job->job_name || !job->run_id)
            continue;
        check_run_name(&name, str_of(job->repo), str_of(job->workflow_name), str_of(job->job_name));
        FORMAT(start, "%s:%lld/", job->run_id, (long long)job->pr_number);
        err = checks_put(v, str_of(job->head_sha), name.ptr, start);
    }
    return err;
}

/* Appends what the view has, or why it could not be asked: in JSON null. */
static void put_view(struct buf *to, const struct ctl *ctl, struct str delivery,
                     const struct args *args)
{
    struct why why;
    bool json = args->json;
    struct view v = { .json = json, .repo = str_of(args->repo), .why = &why };
    const struct {
        const char *name, *title, *none;
        struct buf *text;
    } parts[] = {
        { "view", "in Redis\n", "in Redis: nothing of it\n", &v.states },
        { "check_runs", "check runs at GitHub\n", "check runs at GitHub: none\n", &v.checks },
        { "comments", "on-call comments at GitHub\n", "", &v.comments },
    };
    for (size_t i = 0; i < 3; i++)
        buf_init(parts[i].text, TEXT_MAX);
    enum err err = ctl_redis(ctl, &v.redis, &why);
    if (!err)
        err = dispatches_put(&v, delivery);
    if (!err)
        err = jobs_put(&v, delivery);
    for (size_t i = 0; i < 3; i++) {
        struct str text = buf_str(parts[i].text);
        if (json) {
            json_put_name(to, parts[i].name);
            buf_printf(to, !err ? "[%.*s]" : "null", STR_ARG(text));
        } else if (!err) {
            buf_puts(to, text.len ? parts[i].title : parts[i].none);
            buf_put(to, text);
        }
        buf_clear(parts[i].text);
    }
    if (err && !json)
        clean_printf(to, "Redis and check runs at GitHub: not looked at: %s\n", why.text);
    redis_free(v.redis);
    free(v.ids);
}

/* ---- one delivery: the steps [first … end) -------------------------------------------------- */

static const char *step_name(const struct summary *s)
{
    static const char *const names[TOPIC_COUNT] = {
        [TOPIC_EVENTS] = "published",   [TOPIC_DISPATCHES] = "dispatch",
        [TOPIC_CALLBACKS] = "callback", [TOPIC_RECONCILE] = "check runs",
        [TOPIC_RESULTS] = "result",     [TOPIC_ALLOWLIST] = "allowlist",
        [TOPIC_DLQ] = "parked",
    };
    if (s->topic == TOPIC_DLQ && !str_is(str_of(s->outcome), "parked"))
        return "resolved";
    if (topic_is_delay(s->topic))
        return "delayed";
    return s->topic == TOPIC_COUNT ? s->topic_name : names[s->topic] ? names[s->topic] : "routed";
}

static void put_step(struct buf *to, const struct summary *s, int64_t before_ms)
{
    int64_t ms = s->at_ms > before_ms ? s->at_ms - before_ms : 0;
    if (ms < 10000)
        buf_printf(to, "  %+7" PRId64 " ms  ", ms);
    else
        buf_printf(to, "  %+7.1f s   ", (double)ms / 1000.0);
    buf_printf(to, "%-10s  ", step_name(s));
    if (s->repos) {
        if (s->tier)
            buf_printf(to, "L%d ", s->tier);
        repos_put(to, str_of(s->repos));
        buf_puts(to, "  ");
    }
    if (s->topic != TOPIC_EVENTS)
        clean_printf(to, "%s  ", s->outcome);
    if (*s->detail)
        clean_printf(to, "%s  ", s->detail);
    buf_printf(to, "%s[%d]@%" PRId64 "\n", s->topic_name, (int)s->partition, s->offset);
}

static const struct summary *event_of(const struct timeline *t, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (t->steps[i].topic == TOPIC_EVENTS)
            return &t->steps[i];
    return &t->steps[first];
}

static void put_delivery(struct buf *to, const struct timeline *t, size_t first, size_t end,
                         struct str repo)
{
    const struct summary *event = event_of(t, first, end);
    bool color = ctl_color(stdout);
    int64_t before_ms = event->at_ms;
    struct downstream_state *all;
    size_t n = timeline_states(t, first, end, clock_wall_ms(), &all);
    clean_printf(to, "delivery %s  %s", event->delivery, event->event);
    if (event->pr)
        buf_printf(to, "  #%" PRId64, event->pr);
    if (*event->head_sha)
        clean_printf(to, "  head %s", event->head_sha);
    buf_putc(to, '\n');
    if (event->topic == TOPIC_EVENTS && event->received_ms) {
        char at[CLOCK_TEXT_SIZE];
        before_ms = event->received_ms;
        clock_format(before_ms, at);
        buf_printf(to, "  %s  %s\n", at,
                   str_starts(str_of(event->detail), "redelivered")
                       ? "GitHub tried to deliver it, in vain; fetched later"
                       : "accepted  last byte of the webhook");
    }
    for (size_t i = first; i < end; i++) {
        put_step(to, &t->steps[i], before_ms);
        before_ms = t->steps[i].at_ms;
    }
    buf_puts(to, n ? "downstreams\n" : "downstreams: none were routed to yet\n");
    for (size_t i = 0; i < n; i++) {
        if (!repos_have(all[i].repo, repo))
            continue;
        clean_printf(to, "  L%d  %.*s  ", all[i].tier, STR_ARG(all[i].repo));
        buf_puts(to, color ? "\033[1m" : "");
        clean_printf(to, "%s", all[i].state);
        buf_puts(to, color ? "\033[0m" : "");
        clean_printf(to, "  %s\n", all[i].why);
    }
    free(all);
}

static void delivery_put_json(struct buf *to, const struct timeline *t, size_t first, size_t end,
                              struct str repo)
{
    struct downstream_state *all;
    size_t n = timeline_states(t, first, end, clock_wall_ms(), &all);
    put_json(to, "{delivery:%s received_ms:%" PRId64 " steps:[", t->steps[first].delivery,
             event_of(t, first, end)->received_ms);
    for (size_t i = first; i < end; i++)
        summary_json(to, &t->steps[i]);
    put_json(to, "] downstreams:[");
    for (size_t i = 0; i < n; i++)
        if (repos_have(all[i].repo, repo))
            put_json(to, "{repo:%.*s tier:%d state:%s why:%s}", STR_ARG(all[i].repo), all[i].tier,
                     all[i].state, all[i].why);
    buf_putc(to, ']');
    free(all);
}

/* ---- the verb ------------------------------------------------------------------- */

/* Every step of the event, as the scan finds it. */
struct collecting {
    const struct ctl *ctl;
    struct filter filter; /* without repo: what is of no downstream belongs to each */
    struct str repo;
    struct timeline to;
};

static bool collect(void *opaque, const struct record *record)
{
    struct collecting *c = opaque;
    struct summary s;
    summary_of(&s, &c->ctl->topics, record);
    if (filter_matches(&c->filter, &s) && *s.delivery &&
        (!s.repos || repos_have(str_of(s.repos), c->repo)))
        timeline_add(&c->to, &s);
    else
        summary_clear(&s);
    return true;
}

static int timeline_print(const struct ctl *ctl, const struct args *args, const struct timeline *t,
                          size_t first, size_t end)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(TEXT_MAX);
    (args->json ? delivery_put_json : put_delivery)(&text, t, first, end, str_of(args->repo));
    put_view(&text, ctl, str_of(t->steps[first].delivery), args);
    buf_puts(&text, args->json ? "}\n" : "");
    if (buf_full(&text)) {
        ctl_say(ctl,
                "delivery %s has %zu steps, which is more than can be shown (%u MiB); `crcrctl "
                "tail` shows them one by one",
                t->steps[first].delivery, end - first, TEXT_MAX >> 20);
        return CTL_PROBLEM;
    }
    fputs(first && !args->json ? "\n" : "", stdout);
    (args->json ? ctl_put : ctl_put_text)(&text);
    return CTL_OK;
}

/* When the delivery came, as far as Redis knows; 0: it does not. */
static int64_t came_ms(const struct ctl *ctl, struct str delivery)
{
    struct redis *redis = NULL;
    struct dispatch_view *one = NULL;
    struct why why;
    size_t n = 0;
    if (!ctl_redis(ctl, &redis, &why))
        (void)!dispatches_of_delivery(redis, delivery, 1, &one, &n, &why);
    int64_t ms = n ? one->received_ms : 0;
    free(one);
    redis_free(redis);
    return ms;
}

/* Of one delivery nothing is read of before it came: some topics keep a year. Else `events` says
 * when that was, which keeps a week; else all is read. */
static enum err read_topics(struct scan *scan, struct collecting *c, struct why *why)
{
    int64_t ms = 0;
    enum err err = OK;
    if (c->filter.delivery.len && !scan->from_ms && !(ms = came_ms(c->ctl, c->filter.delivery))) {
        struct scan events = { .topics = SCAN(TOPIC_EVENTS) };
        err = scan_all(&events, c->ctl, collect, c, why);
        scan->topics &= ~SCAN(TOPIC_EVENTS);
        for (size_t i = 0; i < c->to.n; i++)
            if (!ms || c->to.steps[i].received_ms < ms)
                ms = c->to.steps[i].received_ms;
    }
    if (ms > CLOCKS_MS)
        scan->from_ms = ms - CLOCKS_MS;
    return err ? err : scan_all(scan, c->ctl, collect, c, why);
}

int verb_trace(struct ctl *ctl, const struct args *args)
{
    struct collecting c = { .ctl = ctl, .filter.pr = args->pr, .repo = str_of(args->repo) };
    /* Those hold nothing of one delivery. */
    struct scan scan = { .topics =
                             ~(SCAN(TOPIC_ALLOWLIST) | SCAN(TOPIC_RECONCILE) | SCAN(TOPIC_AUDIT)),
                         .from_ms = args->since_ms };
    const struct timeline *t = &c.to;
    struct why why;
    int code = CTL_OK;
    if (!args->n_names == !args->pr)
        return ctl_bad(ctl, "arguments", args->n_names ? "DELIVERY and --pr" : "",
                       "one of DELIVERY and --pr");
    if (args->n_names)
        c.filter.delivery = str_of(args->names[0]);
    timeline_init(&c.to);
    enum err err = read_topics(&scan, &c, &why);
    if (err)
        code = ctl_fail(ctl, err, &why);
    timeline_sort(&c.to);
    for (size_t first = 0, end; !err && first < t->n; first = end) {
        for (end = first + 1;
             end < t->n && !strcmp(t->steps[end].delivery, t->steps[first].delivery);)
            end++;
        if (timeline_print(ctl, args, t, first, end) != CTL_OK)
            code = CTL_PROBLEM;
    }
    if (!err && !t->n) {
        code = CTL_PROBLEM;
        if (args->pr)
            ctl_say(ctl, "nothing of pull request %lld in the topics", (long long)args->pr);
        else
            ctl_say(ctl,
                    "nothing of delivery %s in the topics: it was never accepted, or is older than "
                    "they keep",
                    args->names[0]);
    }
    timeline_clear(&c.to);
    return code;
}
