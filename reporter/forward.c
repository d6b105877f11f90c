/* The role forward: results → HUD API. The rows of one job go one after the other, those of many
 * jobs at once. While the HUD is unavailable everything waits, in hand and in the topic, and goes
 * on where it stopped.
 *
 *   QUEUED ──▶ POSTING ──2xx──▶ work_done
 *     ▲           ├──4xx, 5xx too often while others got 2xx──▶ the DLQ
 *     └── later ◀─┴──5xx, no answer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/base/url.h"
#include "../common/io/http_client.h"
#include "../common/io/retry_after.h"
#include "forward_body.h"
#include "reporter.h"

#define POSTING_MAX    16  /* at the same time */
#define IN_HAND_MAX    500 /* over all partitions */
#define BODY_MAX_BYTES (2u << 20)
#define TICK_MS        1000
#define RESULTS        "/crcr/results"
#define WAIT_FIRST_MS  1000 /* doubled up to WAIT_MOST_MS while the HUD is unavailable */
#define WAIT_MOST_MS   30000

struct row {
    struct forward *forward;
    struct work *work;
    bool posting;
    int64_t retries;       /* how often the HUD answered 5xx to it, and 2xx to another since */
    uint64_t sent_before;  /* the forward's n_sent when it was taken, or got its last 5xx */
    int64_t not_before_ms; /* monotonic */
    int64_t wait_ms;       /* the last wait of this one */
    struct buf body;
    struct job_rows *lane;
    struct row *prev, *next; /* in its lane */
};

/* The rows of one job, in order. */
struct job_rows {
    char *key;
    size_t key_len;
    struct row *rows;
    UT_hash_handle hh;
};

struct forward {
    struct role_ctx *role;
    struct worker *worker;
    struct http_client *client;
    char url[2048 + sizeof(RESULTS)];
    char shown[2048]; /* the same as it may be logged (url_shown) */
    const char *bot_key;
    struct job_rows *lanes; /* by key; in the order in which they are tried */
    int64_t max_retries;    /* 0: for ever */
    size_t n_posting;
    uint64_t n_sent; /* rows that the HUD took */
    bool unavailable;
    int64_t not_before_ms; /* monotonic: when the HUD is asked again */
    int64_t wait_ms;
};

/* ---- rows and lanes ---------------------------------------------------------------------------
 */

static struct row *row_add(struct forward *f, struct work *work)
{
    struct str key = work->record->key.ptr ? work->record->key : STR_LIT("");
    struct row *row = mem_alloc(1, sizeof(*row));
    struct job_rows *lane;
    HASH_FIND(hh, f->lanes, key.ptr, key.len, lane);
    if (!lane) {
        lane = mem_alloc(1, sizeof(*lane));
        lane->key = str_dup(key);
        lane->key_len = key.len;
        HASH_ADD_KEYPTR(hh, f->lanes, lane->key, key.len, lane);
    }
    row->forward = f;
    row->work = work;
    row->lane = lane;
    row->sent_before = f->n_sent;
    buf_init(&row->body, BODY_MAX_BYTES);
    work->user = row;
    DL_APPEND(lane->rows, row);
    return row;
}

static void row_free(struct row *row)
{
    struct job_rows *lane = row->lane;
    DL_DELETE(lane->rows, row);
    buf_clear(&row->body);
    if (!lane->rows) {
        HASH_DEL(row->forward->lanes, lane);
        free(lane->key);
        free(lane);
    }
    free(row);
}

static void row_done(struct row *row)
{
    work_done(row->work);
    row_free(row);
}

static void row_dead(struct row *row, const char *class, const char *error)
{
    work_dead(row->work, class, error);
    row_done(row);
}

static void forward_take(void *opaque, struct work *work)
{
    struct forward *f = opaque;
    struct result_record result;
    struct why why;
    if (!work->record->value.ptr) { /* a tombstone: the row was taken back */
        work_done(work);
        return;
    }
    struct row *row = row_add(f, work);
    if (result_record_from_json(work->record->value, &result, &why)) {
        row_dead(row, "poison", why.text);
        return;
    }
    forward_body(&result, &row->body);
    result_record_clear(&result);
    if (buf_full(&row->body))
        row_dead(row, "refused", "the result is larger than 2 MiB");
}

/* ---- what the HUD answers ---------------------------------------------------------------------
 */

static int64_t wait_longer(int64_t wait_ms)
{
    int64_t next = wait_ms ? wait_ms * 2 : WAIT_FIRST_MS;
    return next > WAIT_MOST_MS ? WAIT_MOST_MS : next;
}

/* Goes behind the others, and waits on its own besides: while one row is answered 5xx the next are
 * tried, and find out that the HUD is there. Only then is it the row's fault, and counts: an outage
 * costs nothing. */
static void row_wait(struct row *row, bool may_be_the_row, const char *reason)
{
    struct forward *f = row->forward;
    bool about_the_row = may_be_the_row && f->n_sent != row->sent_before;
    struct job_rows *lane = row->lane;
    row->wait_ms = wait_longer(row->wait_ms);
    row->not_before_ms = clock_mono_ms() + row->wait_ms;
    HASH_DEL(f->lanes, lane);
    HASH_ADD_KEYPTR(hh, f->lanes, lane->key, lane->key_len, lane);
    row->sent_before = f->n_sent;
    if (about_the_row && f->max_retries > 0 && ++row->retries > f->max_retries)
        row_dead(row, "exhausted", reason);
}

static void hud_failed(struct forward *f, const char *reason)
{
    if (!f->unavailable)
        log_warn("hud_unavailable", LOG_STR("url", str_of(f->shown)),
                 LOG_STR("error", str_of(reason)));
    f->unavailable = true;
    if (f->not_before_ms > clock_mono_ms()) /* another post has found out a moment ago */
        return;
    f->wait_ms = wait_longer(f->wait_ms);
    f->not_before_ms = clock_mono_ms() + f->wait_ms;
}

/* 408, 429 and 503: the HUD says when all may go on (RFC 9110 section 10.2.3). False: it does not.
 */
static bool obey_retry_after(struct forward *f, const struct http_answer *answer)
{
    int64_t wall_ms = clock_wall_ms(), until_ms;
    if (answer->err || (answer->status != 408 && answer->status != 429 && answer->status != 503) ||
        !retry_after(answer->headers, wall_ms, &until_ms))
        return false;
    until_ms += clock_mono_ms() - wall_ms;
    if (until_ms > f->not_before_ms)
        f->not_before_ms = until_ms;
    return true;
}

static const char *const verdicts[] = {
    [FORWARD_SENT] = "sent", [FORWARD_WAIT] = "waiting", [FORWARD_REFUSED] = "refused"
};

static void post_answered(void *opaque, const struct http_answer *answer)
{
    struct row *row = opaque;
    struct forward *f = row->forward;
    struct metrics *m = role_metrics(f->role);
    int status = !answer->err ? answer->status : 0;
    enum forward_verdict verdict = forward_classify(status);
    char reason[160];
    FAULT_POINT("forward.posted");
    f->n_posting--;
    row->posting = false;
    metrics_add(m, METRIC_RESULTS_POSTED, METRIC_LABELS(str_of(verdicts[verdict])), 1);
    metrics_observe(m, METRIC_POST_SECONDS, NULL, (double)answer->micros / 1e6);
    if (!answer->err)
        snprintf(reason, sizeof(reason), "the HUD answered %d", answer->status);
    else
        snprintf(reason, sizeof(reason), "the HUD did not answer: %s", answer->reason);
    if (verdict == FORWARD_WAIT) {
        hud_failed(f, reason);
    } else {
        if (f->unavailable)
            log_info("hud_back", LOG_STR("url", str_of(f->shown)));
        f->unavailable = false;
        f->wait_ms = 0;
    }
    bool about_all = obey_retry_after(f, answer);
    f->n_sent += verdict == FORWARD_SENT;
    if (verdict == FORWARD_SENT)
        row_done(row);
    else if (verdict == FORWARD_REFUSED)
        row_dead(row, "refused", reason);
    else
        row_wait(row, !about_all && status >= 500, reason);
}

static void row_post(struct row *row)
{
    struct forward *f = row->forward;
    struct headers headers;
    struct why why;
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "x-hud-internal-bot", str_of(f->bot_key));
    const struct http_request request = {
        .method = "POST",
        .url = f->url,
        .headers = &headers,
        .body = buf_str(&row->body),
    };
    if (http_client_start(f->client, &request, post_answered, row, &why)) {
        hud_failed(f, why.text);
        return;
    }
    row->posting = true;
    f->n_posting++;
}

/* ---- the role ---------------------------------------------------------------------------------
 */

/* Starts the first of each lane. While the HUD is unavailable one post at a time asks whether it is
 * back. */
static int forward_tick(void *opaque)
{
    struct forward *f = opaque;
    struct job_rows *lane, *next;
    int64_t now = clock_mono_ms();
    bool ours = worker_may_act(f->worker, clock_boot_ms());
    bool waiting = now < f->not_before_ms || !ours;
    role_waiting(f->role, f->unavailable || waiting);
    HASH_ITER(hh, f->lanes, lane, next)
    {
        struct row *row = lane->rows;
        if (waiting || f->n_posting >= (f->unavailable ? 1 : POSTING_MAX))
            break;
        if (!row->posting && now >= row->not_before_ms)
            row_post(row);
    }
    return TICK_MS;
}

static void forward_drop(void *opaque, struct work *work)
{
    struct row *row = work->user;
    (void)opaque;
    if (row->posting)
        return;
    row_free(row);
    work_drop(work);
}

static void forward_work_forget(void *opaque, struct work *work)
{
    (void)opaque;
    row_free(work->user);
}

static bool forward_full(void *opaque)
{
    const struct forward *f = opaque;
    return worker_in_hand(f->worker) >= IN_HAND_MAX;
}

static enum err forward_open(struct forward *f, const struct reporter *r, struct why *why)
{
    static const enum topic reads[] = { TOPIC_RESULTS };
    static const struct worker_role does = { .take = forward_take,
                                             .tick = forward_tick,
                                             .drop = forward_drop,
                                             .forget = forward_work_forget,
                                             .full = forward_full };
    const struct http_client_options client = { .user_agent = "crcr-reporter",
                                                .ca_file = r->ca_file };
    enum err err = http_client_new(&f->client, &client, why);
    const struct worker_options worker = {
        .role = f->role,
        .kafka = &r->kafka,
        .topics = &r->topics,
        .group = GROUP_FORWARD,
        .reads = reads,
        .n_reads = 1,
        .http = f->client,
        .metrics = reporter_worker_metrics,
        .does = &does,
        .opaque = f,
    };
    if (!err)
        err = worker_new(&f->worker, &worker, why);
    if (!err)
        err = worker_read(f->worker, why);
    return err;
}

/* There is no HUD: nothing to do, and nothing wrong. */
static enum err forward_off(struct role_ctx *role)
{
    log_info(
        "forward_off",
        LOG_STR(
            "reason",
            STR_LIT("HUD_API_URL is unset, which has no default here: deploy/FROM_PYTORCH.md")));
    role_ready(role, NULL);
    role_waiting(role, true);
    while (!role_stopping(role))
        reporter_tick(role, TICK_MS);
    return OK;
}

enum err forward_run(struct role_ctx *role, void *reporter, struct why *why)
{
    struct forward f = { .role = role };
    const char *base = config_text(role_config(role), "HUD_API_URL");
    if (!base || !*base)
        return forward_off(role);
    f.bot_key = config_text(role_config(role), "HUD_BOT_KEY");
    f.max_retries = config_number(role_config(role), "HUD_MAX_RETRIES");
    snprintf(f.url, sizeof(f.url), "%s" RESULTS, base);
    url_shown(f.shown, sizeof(f.shown), str_of(f.url));
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
        metrics_add(role_metrics(role), METRIC_RESULTS_POSTED, METRIC_LABELS(str_of(verdicts[i])),
                    0); /* an alert sees the first */
    enum err err = forward_open(&f, reporter, why);
    if (!err)
        err = worker_run(f.worker, why);
    http_client_free(f.client);
    worker_free(f.worker);
    return err;
}
