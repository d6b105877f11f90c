#include "live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(message) abort() /* no memory: as mem.h says */
#include <uthash.h>
#include <utlist.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "../../common/base/mem.h"

#define BODY_MAX_BYTES (16u << 20)
#define WAITING_MAX    2000
#define WAIT_MS        20000 /* proxies cut off what is silent for 30 or 60 s */
#define LOOK_EVERY_MS  50    /* 20 a second */
#define LOOK_SHARE     30    /* a look is followed by 30 times as long without one */
#define DOWN_MS        1000 /* Redis is not asked again for so long: each time costs a line logged */
#define TURN_MS        500

/* Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html. The answer
 * ends there; the client comes again after `retry` ms with the id as Last-Event-ID. */
#define EVENT_TYPE "text/event-stream"
#define CHANGED    "retry: 500\nid: %s\nevent: changed\ndata: {}\n\n"
#define UNREADABLE "retry: 2000\nevent: changed\ndata: {}\n\n"
#define UNCHANGED  "retry: 500\n: nothing has changed\n\n"
#define LEAVING    "retry: 2000\n: leaving\n\n"

struct waiter {
    struct waiter *prev, *next;
    struct http_exchange *x;
    int64_t due_ms; /* who waits for a change; monotonic */
};

/* What somebody asks or waits for. Only the thread removes it. */
struct subject {
    struct path_ask ask;
    struct waiter *asking, *waiting;
    int64_t asked_ms;    /* the oldest of asking */
    int64_t rendered_ms; /* monotonic; 0: not yet */
    UT_hash_handle hh;
};

struct live {
    struct web_view view; /* the thread's, as the next three */
    bool down;            /* Redis; it is not asked before: */
    int64_t down_until_ms;
    int64_t look_at_ms; /* the next look, monotonic */
    struct page_cache *cache;
    struct role_ctx *role;
    pthread_t thread;
    struct wake wake;
    atomic_bool ending;

    pthread_mutex_t lock; /* for what follows */
    struct subject *subjects;
    size_t n_waiting;
    bool leaving;
};

/* ---- answers --------------------------------------------------------------------------------- */

/* The digest that the client has: that of the last event, or of the page that it asked for. */
static struct str known_of(const struct http_exchange *x)
{
    struct str id = http_header(x, "Last-Event-ID");
    return id.ptr ? id : http_query(x, "etag");
}

static void answer_event(struct live *l, struct http_exchange *x, const char *text)
{
    web_reply(l->role, x, "live", 200, EVENT_TYPE, NULL, str_of(text));
}

static void answer_page(struct live *l, struct http_exchange *x, const struct subject *s,
                        const struct page *page)
{
    web_reply_page(l->role, x, s->ask.path, page);
}

/* Each one answered with the same event; the list is freed. */
static void answer_events(struct live *l, struct waiter *list, const char *text)
{
    struct waiter *w, *after;
    DL_FOREACH_SAFE(list, w, after)
    {
        answer_event(l, w->x, text);
        free(w);
    }
}

static void changed_text(char to[128], const struct page *page)
{
    if (page->status == 503)
        snprintf(to, 128, UNREADABLE);
    else
        snprintf(to, 128, CHANGED, page->etag);
}

/* ---- who waits; with the lock held ----------------------------------------------------------- */

/* ask is taken over. */
static struct subject *subject_of(struct live *l, struct path_ask *ask)
{
    struct subject *s;
    HASH_FIND(hh, l->subjects, ask->key.ptr, ask->key.len, s);
    if (s) {
        path_ask_clear(ask);
        return s;
    }
    s = mem_alloc(1, sizeof(*s));
    s->ask = *ask;
    HASH_ADD_KEYPTR(hh, l->subjects, s->ask.key.ptr, s->ask.key.len, s);
    return s;
}

static void subject_drop_idle(struct live *l, struct subject *s)
{
    if (s->asking || s->waiting)
        return;
    HASH_DEL(l->subjects, s);
    path_ask_clear(&s->ask);
    free(s);
}

static void take(struct live *l, struct subject *s, struct waiter *w, struct waiter **to)
{
    DL_DELETE(s->waiting, w);
    DL_APPEND(*to, w);
    l->n_waiting--;
}

/* Those to whom the page is new; all when it could not be read. */
static struct waiter *take_changed(struct live *l, struct subject *s, const struct page *page)
{
    struct waiter *taken = NULL, *w, *after;
    DL_FOREACH_SAFE(s->waiting, w, after)
    {
        if (page->status == 503 || !page_is_known(page->etag, known_of(w->x)))
            take(l, s, w, &taken);
    }
    return taken;
}

/* Those who have waited long enough. */
static struct waiter *take_due(struct live *l, int64_t now_ms)
{
    struct waiter *taken = NULL, *w, *after;
    struct subject *s, *next;
    HASH_ITER(hh, l->subjects, s, next)
    {
        DL_FOREACH_SAFE(s->waiting, w, after)
        {
            if (w->due_ms <= now_ms || l->leaving)
                take(l, s, w, &taken);
        }
        subject_drop_idle(l, s);
    }
    return taken;
}

/* What is to be rendered now: what was asked for first; else, when a look is due, what was looked
 * at longest ago. NULL: nothing. */
static struct subject *subject_next(struct live *l, int64_t now_ms)
{
    struct subject *asked = NULL, *oldest = NULL, *s, *next;
    HASH_ITER(hh, l->subjects, s, next)
    {
        if (s->asking && (!asked || s->asked_ms < asked->asked_ms))
            asked = s;
        if (!oldest || s->rendered_ms < oldest->rendered_ms)
            oldest = s;
    }
    if (asked)
        return asked;
    bool due = oldest && now_ms >= l->look_at_ms && now_ms - oldest->rendered_ms >= LIVE_FRESH_MS;
    return due ? oldest : NULL;
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* why: empty, or why the page could not be read. */
static void rendered(struct live *l, const struct subject *s, const struct why *why)
{
    bool up = redis_is_up(l->view.redis);
    if (up == l->down)
        reporter_redis_seen(l->role, up, why->text);
    l->down = !up;
    if (!up)
        l->down_until_ms = clock_mono_ms() + DOWN_MS;
    if (*why->text)
        log_warn("page_failed", LOG_STR("route", str_of(s->ask.path->name)),
                 LOG_STR("error", str_of(why->text)));
}

/* page is the caller's to clear. */
static void page_render(struct live *l, const struct subject *s, struct page *page)
{
    struct buf body;
    struct why why;
    *page = (struct page){ .status = 503, .at_ms = clock_mono_ms() };
    buf_init(&body, BODY_MAX_BYTES);
    if (page->at_ms < l->down_until_ms && !s->ask.path->no_view) {
        buf_puts(&body, "{\"detail\":\"the view is unavailable, try again\"}");
    } else {
        page->status = path_render(&l->view, &s->ask, &body, &why);
        rendered(l, s, &why);
    }
    page->body = buf_take(&body, &page->len);
    if (page->status != 503)
        page_cache_put(l->cache, s->ask.key, page);
}

/* Renders it, and answers those whom that concerns. */
static void subject_render(struct live *l, struct subject *s, bool asked)
{
    struct page page;
    struct waiter *w, *after;
    char text[128];
    page_render(l, s, &page);
    int64_t now_ms = clock_mono_ms(), rest_ms = (now_ms - page.at_ms) * LOOK_SHARE;
    if (rest_ms < LOOK_EVERY_MS || page.status == 503) /* the others are to learn of that soon */
        rest_ms = LOOK_EVERY_MS;
    if (!asked)
        l->look_at_ms = now_ms + rest_ms;
    changed_text(text, &page);

    pthread_mutex_lock(&l->lock);
    struct waiter *asking = s->asking, *changed = take_changed(l, s, &page);
    s->asking = NULL;
    s->rendered_ms = now_ms;
    pthread_mutex_unlock(&l->lock);
    DL_FOREACH_SAFE(asking, w, after)
    {
        answer_page(l, w->x, s, &page);
        free(w);
    }
    answer_events(l, changed, text);
    page_clear(&page);
}

static void *live_main(void *arg)
{
    struct live *l = arg;
    while (!atomic_load(&l->ending)) {
        role_alive(l->role);
        wake_reset(&l->wake);
        int64_t now_ms = clock_mono_ms();
        pthread_mutex_lock(&l->lock);
        struct waiter *due = take_due(l, now_ms);
        struct subject *s = subject_next(l, now_ms);
        bool asked = s && s->asking, leaving = l->leaving;
        size_t waiting = l->n_waiting;
        pthread_mutex_unlock(&l->lock);
        metrics_set(role_metrics(l->role), METRIC_PAGES_WAITING, NULL, (double)waiting);
        answer_events(l, due, leaving ? LEAVING : UNCHANGED);
        if (s)
            subject_render(l, s, asked);
        else
            wake_wait(&l->wake, waiting ? LOOK_EVERY_MS : TURN_MS);
    }
    return NULL;
}

/* ---- the outside ----------------------------------------------------------------------------- */

enum err live_new(struct live **ret, const struct web_view *view, struct page_cache *cache,
                  struct role_ctx *role, struct why *why)
{
    struct live *l = mem_alloc(1, sizeof(*l));
    *l = (struct live){ .view = *view, .cache = cache, .role = role };
    pthread_mutex_init(&l->lock, NULL);
    enum err err = wake_init(&l->wake, why);
    int failure = err ? 0 : pthread_create(&l->thread, NULL, live_main, l);
    if (failure)
        err = why_set(why, ERR_STOP, "pthread_create: %s", strerror(failure));
    if (err) {
        wake_clear(&l->wake);
        pthread_mutex_destroy(&l->lock);
        free(l);
        return err;
    }
    *ret = l;
    return OK;
}

void live_free(struct live *l)
{
    if (!l)
        return;
    live_leave(l);
    atomic_store(&l->ending, true);
    wake_up(&l->wake);
    pthread_join(l->thread, NULL);
    struct subject *s, *next;
    answer_events(l, take_due(l, 0), LEAVING);
    HASH_ITER(hh, l->subjects, s, next)
    {
        struct waiter *w, *after;
        DL_FOREACH_SAFE(s->asking, w, after)
        {
            http_reply_error(w->x, 503, "shutting down");
            free(w);
        }
        s->asking = NULL;
        subject_drop_idle(l, s);
    }
    wake_clear(&l->wake);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void live_ask(struct live *l, struct http_exchange *x, struct path_ask *ask)
{
    struct waiter *w = mem_alloc(1, sizeof(*w));
    w->x = x;
    pthread_mutex_lock(&l->lock);
    struct subject *s = subject_of(l, ask);
    if (!s->asking)
        s->asked_ms = clock_mono_ms();
    DL_APPEND(s->asking, w);
    pthread_mutex_unlock(&l->lock);
    wake_up(&l->wake);
}

void live_wait(struct live *l, struct http_exchange *x, struct path_ask *ask)
{
    struct page page = { .status = 0 };
    char text[128];
    struct str known = known_of(x);
    int64_t now_ms = clock_mono_ms();
    bool found = page_cache_get(l->cache, ask->key, INT64_MAX, known, &page);
    /* An older one than that may be older than what the client has from another replica. */
    if (found && page.at_ms >= now_ms - LIVE_FRESH_MS && !page_is_known(page.etag, known)) {
        path_ask_clear(ask);
        changed_text(text, &page);
        answer_event(l, x, text);
        return;
    }
    struct waiter *w = mem_alloc(1, sizeof(*w));
    *w = (struct waiter){ .x = x, .due_ms = now_ms + WAIT_MS };
    pthread_mutex_lock(&l->lock);
    bool room = l->n_waiting < WAITING_MAX && !l->leaving, leaving = l->leaving;
    if (room) {
        struct subject *s = subject_of(l, ask);
        if (found && page.at_ms > s->rendered_ms)
            s->rendered_ms = page.at_ms;
        DL_APPEND(s->waiting, w);
        l->n_waiting++;
    }
    pthread_mutex_unlock(&l->lock);
    if (room)
        return;
    path_ask_clear(ask);
    free(w);
    if (leaving)
        answer_event(l, x, LEAVING);
    else
        web_reply(l->role, x, "live", 503, NULL, NULL, STR_LIT("{\"detail\":\"too many wait\"}"));
}

void live_leave(struct live *l)
{
    pthread_mutex_lock(&l->lock);
    l->leaving = true;
    pthread_mutex_unlock(&l->lock);
    wake_up(&l->wake);
}
