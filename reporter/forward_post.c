#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../common/base/clock.h"
#include "../common/base/fault.h"
#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "../common/io/retry_after.h"
#include "forward.h"
#include "forward_body.h"
#include "park.h"

#define WAIT_FIRST_MS 1000 /* doubled up to WAIT_MOST_MS while the HUD is away */
#define WAIT_MOST_MS  30000

void post_free(struct post *p)
{
    struct lane *lane = p->lane;
    DL_DELETE(lane->posts, p);
    buf_clear(&p->body);
    free(p->class);
    free(p->error);
    if (!lane->posts) {
        HASH_DEL(p->forward->lanes, lane);
        free(lane->key);
        free(lane);
    }
    free(p);
}

static void post_done(struct post *p)
{
    role_progress(p->forward->role);
    record_done(p->record);
    post_free(p);
}

void post_refuse(struct post *p, const char *class, const char *error)
{
    p->class = mem_dup(class);
    p->error = mem_dup(error);
    p->state = POST_QUEUED;
}

static int64_t wait_longer(int64_t wait_ms)
{
    int64_t next = wait_ms ? wait_ms * 2 : WAIT_FIRST_MS;
    return next > WAIT_MOST_MS ? WAIT_MOST_MS : next;
}

/* Goes behind the others, and waits on its own besides: while one row is answered 5xx the next are
 * tried, and find out that the HUD is there. */
static void post_wait(struct post *p, int status, const char *reason)
{
    bool about_the_row = status >= 500; /* 408 and 429 are about us */
    struct forward *f = p->forward;
    struct lane *lane = p->lane;
    p->wait_ms = wait_longer(p->wait_ms);
    p->not_before_ms = clock_mono_ms() + p->wait_ms;
    HASH_DEL(f->lanes, lane);
    HASH_ADD_KEYPTR(hh, f->lanes, lane->key, lane->key_len, lane);
    if (about_the_row && f->max_retries > 0 && ++p->retries > f->max_retries)
        post_refuse(p, "exhausted", reason);
}

static void hud_seen(struct forward *f, bool up, const char *reason)
{
    if (up) {
        if (f->away)
            log_info("hud_back", LOG_STR("url", str_of(f->url)));
        f->away = false;
        f->wait_ms = 0;
        return;
    }
    if (!f->away)
        log_warn("hud_away", LOG_STR("url", str_of(f->url)), LOG_STR("error", str_of(reason)));
    f->away = true;
    if (f->not_before_ms > clock_mono_ms()) /* another post told it a moment ago */
        return;
    f->wait_ms = wait_longer(f->wait_ms);
    f->not_before_ms = clock_mono_ms() + f->wait_ms;
}

/* 408 and 429: the HUD says when all may go on (RFC 9110 section 10.2.3). */
static void hud_told(struct forward *f, const struct http_answer *answer)
{
    int64_t wall_ms = clock_wall_ms(), until_ms;
    if (answer->err != OK || (answer->status != 408 && answer->status != 429) ||
        !retry_after(answer->headers, wall_ms, &until_ms))
        return;
    until_ms += clock_mono_ms() - wall_ms;
    if (until_ms > f->not_before_ms)
        f->not_before_ms = until_ms;
}

static const char *const names[] = {
    [FORWARD_SENT] = "sent", [FORWARD_WAIT] = "waiting", [FORWARD_REFUSED] = "refused"
};

void posts_declare(struct metrics *m)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        metrics_add(m, METRIC_RESULTS_POSTED, METRIC_LABELS(str_of(names[i])), 0);
}

static void posted(void *opaque, const struct http_answer *answer)
{
    struct post *p = opaque;
    struct forward *f = p->forward;
    struct metrics *m = role_metrics(f->role);
    int status = answer->err == OK ? answer->status : 0;
    enum forward_verdict verdict = forward_judge(status);
    char reason[160];
    FAULT_POINT("forward.posted");
    f->n_posting--;
    if (answer->stale && p->record) { /* the HUD did not hear of it */
        p->state = POST_QUEUED;
        return;
    }
    metrics_add(m, METRIC_RESULTS_POSTED, METRIC_LABELS(str_of(names[verdict])), 1);
    metrics_observe(m, METRIC_POST_SECONDS, NULL, (double)answer->micros / 1e6);
    if (answer->err == OK)
        snprintf(reason, sizeof(reason), "the HUD answered %d", answer->status);
    else
        snprintf(reason, sizeof(reason), "the HUD did not answer: %s", answer->reason);
    hud_seen(f, verdict != FORWARD_WAIT, reason);
    hud_told(f, answer);
    if (!p->record) {
        post_free(p);
        return;
    }
    p->state = POST_QUEUED;
    if (verdict == FORWARD_SENT)
        post_done(p);
    else if (verdict == FORWARD_REFUSED)
        post_refuse(p, "refused", reason);
    else
        post_wait(p, status, reason);
}

void post_start(struct post *p)
{
    struct forward *f = p->forward;
    struct headers headers;
    struct why why;
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "x-hud-internal-bot", str_of(f->bot_key));
    const struct http_request request = {
        .method = "POST",
        .url = f->url,
        .headers = &headers,
        .body = buf_str(&p->body),
        .known_ms = f->standstill.seen_ms /* the lane was ours then */
    };
    if (http_client_start(f->client, &request, posted, p, &why) != OK) {
        hud_seen(f, false, why.text);
        return;
    }
    p->state = POST_POSTING;
    f->n_posting++;
}

static void parked(void *opaque, enum err err, const struct topic_position *at, const char *reason)
{
    struct post *p = opaque;
    (void)at;
    p->state = POST_QUEUED;
    p->forward->n_parking--;
    if (!p->record) {
        post_free(p);
        return;
    }
    if (err == OK) {
        metrics_add(role_metrics(p->forward->role), METRIC_DLQ,
                    METRIC_LABELS(STR_LIT("forward"), str_of(p->class)), 1);
        post_done(p);
    } else
        log_warn("not_parked", LOG_STR("error", str_of(reason)));
}

void post_park(struct post *p)
{
    struct forward *f = p->forward;
    struct why why;
    if (park_in_dlq(f->writer, &f->reporter->topics, p->record, p->class, p->error, parked, p,
                    &why) != OK)
        return; /* the writer's queue is full: again at the next turn */
    p->state = POST_PARKING;
    f->n_parking++;
    log_warn("parked", LOG_STR("class", str_of(p->class)), LOG_STR("key", p->record->key),
             LOG_STR("error", str_of(p->error)));
}
