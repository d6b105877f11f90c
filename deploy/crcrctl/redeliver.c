/* `crcrctl redeliver`: what GitHub could not deliver to ingest is fetched from GitHub and published
 * to `events`.
 *
 *   list failures ─▶ group by GUID ─▶ look the missing up in `events` ─▶ fetch, classify, publish
 *
 * Nothing is remembered between rounds but what is in `events`: a round that was ended in the
 * middle is continued by the next. */
#include "redeliver.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/model/event_rules.h"
#include "../../common/model/json_scan.h"
#include "app_api.h"
#include "audit.h"
#include "deliveries.h"
#include "out.h"
#include "scan.h"

#define PAGE_MAX   (8u << 20)
#define LINE_MAX   (EVENT_KEY_MAX + 1000)
#define ANSWER_MAX (2 * WEBHOOK_MAX_BYTES) /* the payload and what GitHub puts around it */
/* Our clocks and GitHub's may differ by that much: an event may be stored "before" its attempt. */
#define CLOCKS_MS  (3600 * 1000LL)
#define FAILED_MS  30000
#define OVERLAP_MS (15 * 60 * 1000LL) /* of two rounds of the loop */
#define SWEEP_MS   (24 * 3600 * 1000LL)
#define UNSERVED   3 /* payloads in a row, and GitHub is asked whether it is there */

struct redeliver {
    const struct ctl *ctl;
    const struct args *args;
    struct app_api *api;
    struct topic_writer *writer; /* NULL in a dry run */
    struct audit audit;          /* of a round that publishes something */
    struct event_rules rules;
    int64_t since_ms; /* wall clock: attempts before are not looked at */
    struct pace pace; /* of requests to GitHub */
    size_t unserved;  /* payloads in a row that GitHub did not serve */
    bool impatient;   /* it is there all the same: each of them is asked for once */
};

/* ---- listing -------------------------------------------------------------------------------- */

/* Failed are to GitHub answers of 400 … 599, where 502 and 504 also stand for none. Without that
 * filter every check run of the upstream would be listed again and again. */
static enum err list_attempts(struct redeliver *r, struct deliveries *found, struct why *why)
{
    const char *which = r->args->all ? "" : "&status=failure";
    char path[CURSOR_SIZE + 64], cursor[CURSOR_SIZE] = "";
    struct buf CLEANUP(buf_clear) page = BUF_INIT(PAGE_MAX);
    bool older = false;
    enum err err;
    do {
        FORMAT(path, "/app/hook/deliveries?per_page=100%s%s%s", which, *cursor ? "&cursor=" : "",
               cursor);
        const struct app_request request = { .path = path, .cursor = cursor };
        err = pace_wait(&r->pace) ? app_api_get(r->api, &request, &page, NULL, why)
                                  : why_set(why, ERR_RETRY, "stopped");
        if (!err)
            err = deliveries_add(found, buf_str(&page), r->since_ms, clock_wall_ms(), &older, why);
        progress_show(r->ctl, "listing … %zu attempts", found->attempts);
    } while (!err && !older && *cursor);
    progress_end();
    return err;
}

/* ---- what is here already ------------------------------------------------------------------- */

static bool mark_stored(void *opaque, const struct record *record)
{
    struct delivery *one = deliveries_find(opaque, headers_get(&record->headers, "delivery"));
    if (one && one->state == DELIVERY_MISSING)
        one->state = DELIVERY_STORED;
    return true;
}

/* An event is stored at its first attempt or later; where that one was not seen, the topic is
 * read from its beginning. */
static enum err look_up(struct redeliver *r, struct deliveries *found, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_EVENTS) };
    struct delivery **missing;
    size_t n = deliveries_missing(found, &missing);
    bool all_first = true;
    for (size_t i = 0; i < n; i++)
        all_first = all_first && missing[i]->has_first;
    if (n && all_first)
        scan.from_ms = missing[0]->first_ms - CLOCKS_MS;
    free(missing);
    if (!n)
        return OK;
    enum err err = scan_run(&scan, r->ctl, mark_stored, found, why);
    return !err && ctl_stopped() ? why_set(why, ERR_RETRY, "stopped") : err;
}

/* ---- fetching and publishing ---------------------------------------------------------------- */

static bool on_payload(void *opaque, size_t want, enum json_type type, struct str text,
                       size_t index)
{
    struct str *payload = opaque;
    (void)want;
    (void)index;
    if (type == JSON_SCAN_OBJECT)
        *payload = text;
    return true;
}

static void delivery_fail(const struct redeliver *r, struct delivery *one, const struct why *why)
{
    one->state = DELIVERY_FAILED;
    ctl_say(r->ctl, "%.*s: %s", STR_ARG(one->guid), why->text);
}

/* Under the key and headers that ingest would have given it. */
static enum err payload_publish(struct redeliver *r, struct delivery *one, struct str payload,
                                const struct event_facts *facts, struct why *why)
{
    struct topic_position at = { .topic = NULL };
    struct buf CLEANUP(buf_clear) key = BUF_INIT(EVENT_KEY_MAX), line = BUF_INIT(LINE_MAX);
    struct event event = event_of_facts(one->kind, facts);
    struct headers headers;
    event.delivery = one->guid;
    event.source = STR_LIT("redelivered");
    event.received_ms = one->first_ms;
    headers_init(&headers);
    event_to_headers(&event, &headers);
    event_key(&key, one->kind, facts);
    if (!r->args->dry_run) {
        enum err err = audit_begin(&r->audit, r->ctl, r->args, why);
        if (err)
            return err == ERR_REFUSE ? ERR_STOP : err;
        err = topic_writer_put_wait(r->writer, r->ctl->topics.name[TOPIC_EVENTS], buf_str(&key),
                                    payload, &headers, &at, why);
        if (err)
            return err;
    }
    one->state = DELIVERY_PUBLISHED;
    progress_end();
    if (r->args->json) {
        put_json(NULL,
                 "{delivery:%.*s event:%s action:%.*s key:%s topic:%s partition:%d offset:%" PRId64
                 "}",
                 STR_ARG(one->guid), event_kind_name(one->kind), STR_ARG(event.action), key.ptr,
                 at.topic, (int)at.partition, at.offset);
        return OK;
    }
    clean_printf(&line, "%s %.*s  %s%s%.*s  %s", r->args->dry_run ? "would publish" : "published",
                 STR_ARG(one->guid), event_kind_name(one->kind), event.action.len ? " " : "",
                 STR_ARG(event.action), buf_str(&key).ptr);
    if (!r->args->dry_run)
        buf_printf(&line, "  %s[%d]@%" PRId64, at.topic, (int)at.partition, at.offset);
    ctl_put_line(buf_str(&line), true);
    return OK;
}

/* ERR_RETRY, ERR_UNKNOWN, ERR_STOP: the round cannot go on. What is wrong with this one alone is
 * its own state, also that GitHub cannot serve it: the younger ones are not to wait for it. */
static enum err redeliver_one(struct redeliver *r, struct delivery *one, struct buf *answer,
                              struct event_facts *facts, struct why *why)
{
    static const struct json_want want = { .path = "request.payload", .found = on_payload };
    static const struct json_rules rules = { .nul_in_others = true };
    struct str payload = STR_NONE;
    const char *reason;
    char path[64];
    FORMAT(path, "/app/hook/deliveries/%" PRId64, one->id);
    const struct app_request request = { .path = path, .once = r->impatient };
    enum err err = app_api_get(r->api, &request, answer, NULL, why);
    if (err == ERR_UNKNOWN) {
        delivery_fail(r, one, why);
        if (++r->unserved < UNSERVED)
            return OK;
        /* GitHub may have lost neighbours together, or be unavailable. */
        r->unserved = 0;
        r->impatient = true; /* each of an hour of such payloads would take minutes */
        const struct app_request any = { .path = "/app/hook/deliveries?per_page=1" };
        err = app_api_get(r->api, &any, answer, NULL, why);
        return err ? why_prefix(why, err, "GitHub is unavailable") : OK;
    }
    r->unserved = 0;
    if (!err)
        err = json_scan(buf_str(answer), &rules, &want, 1, &payload, why);
    if (!err && !payload.ptr)
        err = why_set(why, ERR_REFUSE, "GitHub lists it, but has no payload of it any more");
    if (!err &&
        event_classify(&r->rules, one->kind, payload, facts, &reason, why) != EVENT_ACCEPTED) {
        one->state = DELIVERY_SKIPPED;
        one->skipped = reason;
    } else if (!err) {
        err = payload_publish(r, one, payload, facts, why);
    }
    if (err != ERR_REFUSE)
        return err;
    delivery_fail(r, one, why);
    return OK;
}

static enum err publish_missing(struct redeliver *r, struct deliveries *found, struct why *why)
{
    struct event_facts *facts = mem_alloc(1, sizeof(*facts));
    struct delivery **missing;
    size_t n = deliveries_missing(found, &missing);
    struct buf CLEANUP(buf_clear) answer = BUF_INIT(ANSWER_MAX);
    r->unserved = 0;
    r->impatient = false;
    enum err err = OK;
    for (size_t i = 0; !err && i < n; i++) {
        err = pace_wait(&r->pace) ? redeliver_one(r, missing[i], &answer, facts, why)
                                  : why_set(why, ERR_RETRY, "stopped");
        progress_show(r->ctl, "fetching … %zu of %zu", i + 1, n);
    }
    progress_end();
    free(missing);
    free(facts);
    return err;
}

/* ---- round after round ---------------------------------------------------------------------- */

int64_t redeliver_loop_begin(struct redeliver_loop *loop, int64_t now_ms)
{
    int64_t all_ms = now_ms - loop->look_ms, near_ms = loop->complete_ms - OVERLAP_MS;
    loop->start_ms = now_ms;
    loop->sweeps = now_ms - loop->swept_ms >= SWEEP_MS || near_ms <= all_ms;
    return loop->sweeps ? all_ms : near_ms;
}

int64_t redeliver_loop_end(struct redeliver_loop *loop, enum err err, size_t failed)
{
    int64_t pause_ms = loop->pause_ms ? 2 * loop->pause_ms : FAILED_MS;
    if (!err && loop->sweeps)
        loop->swept_ms = loop->start_ms;
    if (!err && !failed) {
        loop->complete_ms = loop->start_ms;
        loop->pause_ms = 0;
        return loop->every_ms;
    }
    loop->pause_ms = pause_ms < loop->every_ms ? pause_ms : loop->every_ms;
    return loop->pause_ms;
}

/* ---- the verb ------------------------------------------------------------------------------- */

/* One round, and one line of what it came to. */
static int once(struct redeliver *r, enum err *err, size_t *failed)
{
    struct buf CLEANUP(buf_clear) sum = BUF_INIT(4096);
    struct deliveries found;
    struct why why;
    int code = CTL_OK;
    deliveries_init(&found);
    *err = list_attempts(r, &found, &why);
    if (!*err && r->args->all)
        deliveries_doubt(&found);
    if (!*err)
        *err = look_up(r, &found, &why);
    if (!*err)
        *err = publish_missing(r, &found, &why);
    *failed = deliveries_count(&found, DELIVERY_FAILED);
    deliveries_sum(&found, r->args->dry_run, &sum);
    if (r->args->json)
        put_json(NULL,
                 "{attempts:%zu dry_run:%i not_looked_at:%zu delivered:%zu pending:%zu "
                 "already_here:%zu published:%zu skipped:%zu failed:%zu}",
                 found.attempts, r->args->dry_run, deliveries_count(&found, DELIVERY_MISSING),
                 deliveries_count(&found, DELIVERY_DELIVERED),
                 deliveries_count(&found, DELIVERY_PENDING),
                 deliveries_count(&found, DELIVERY_STORED),
                 deliveries_count(&found, DELIVERY_PUBLISHED),
                 deliveries_count(&found, DELIVERY_SKIPPED), *failed);
    else
        printf("%s\n", sum.ptr);
    fflush(stdout);
    if (*err && ctl_stopped())
        ctl_say(r->ctl, "stopped before the end; run it again to go on");
    else if (*err)
        code = ctl_fail(r->ctl, *err, &why);
    if ((*err || *failed) && code == CTL_OK)
        code = CTL_PROBLEM;
    audit_end(&r->audit, r->ctl, code, "%s", sum.ptr);
    deliveries_clear(&found);
    return code;
}

/* Until a signal, or until Kafka takes nothing more from this process: another may do better. */
static int again_and_again(struct redeliver *r)
{
    struct redeliver_loop loop = { .look_ms = r->args->since_ms, .every_ms = r->args->every_ms };
    enum err err;
    size_t failed;
    struct why why;
    do {
        r->since_ms = redeliver_loop_begin(&loop, clock_wall_ms());
        (void)once(r, &err, &failed);
        if (r->writer && topic_writer_fatal(r->writer, &why))
            return ctl_fail(r->ctl, ERR_STOP, &why);
    } while (ctl_wait(redeliver_loop_end(&loop, err, failed)));
    return CTL_OK;
}

int verb_redeliver(struct ctl *ctl, const struct args *args)
{
    struct redeliver r = {
        .ctl = ctl,
        .args = args,
        .since_ms = clock_wall_ms() - args->since_ms,
        .pace.per_second = args->rate,
        .rules = { .upstream_repo = str_of(config_text(ctl->config, "UPSTREAM_REPO")),
                   .push_refs = str_of(config_text(ctl->config, "CRCR_PUSH_REFS")) },
    };
    size_t failed;
    struct why why;
    ctl_catch_signals();
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    /* Configuration first: what is missing there is said before anybody is asked. */
    enum err err = app_api_new(&r.api, ctl, &why);
    int code = CTL_OK;
    if (err)
        code = (ctl_fail(ctl, err, &why), CTL_USAGE);
    else if (!args->dry_run && (err = ctl_writer(ctl, TOPIC_EVENTS, &r.writer, &why)))
        code = ctl_fail(ctl, err, &why);
    if (code == CTL_OK)
        code = args->every_ms ? again_and_again(&r) : once(&r, &err, &failed);
    topic_writer_free(r.writer);
    app_api_free(r.api);
    return code;
}
