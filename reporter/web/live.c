#include "live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../../common/base/clock.h"
#include "../../common/base/log.h"
#include "../../common/base/mem.h"
#include "readers.h"

#define CACHE_BYTES    (32u << 20)
#define CACHE_PAGES    1000
#define HELD_BYTES     (48u << 20) /* of the cache, and older pages that somebody still reads */
#define BODY_MAX_BYTES (16u << 20)
#define FRESH_MS       2000 /* how long an answer of the cache is as good as a new one */
#define WAITING_MAX    2000
#define ASKING_MAX     100   /* different answers that are still to be rendered */
#define WAIT_MS        20000 /* proxies cut off what is silent for 30 or 60 s */
#define LOOK_EVERY_MS  50    /* 20 a second */
#define LOOK_SHARE     30    /* a look is followed by 30 times as long without one; but at most */
#define LOOK_REST_MS   1000  /* for all, and */
#define CLIENT_REST_MS 30000 /* for those of the address that it was for */
#define DOWN_MS        1000 /* Redis is not asked again for so long: each time costs a line logged */
#define TURN_MS        500

/* Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html. The answer
 * ends there; the client comes again after `retry` ms with the id as Last-Event-ID. */
#define EVENT_TYPE "text/event-stream"
#define CHANGED    "retry: 500\nid: %s\nevent: changed\ndata: {}\n\n"
#define UNREADABLE "retry: 2000\nevent: changed\ndata: {}\n\n"
#define UNCHANGED  "retry: 500\nevent: unchanged\ndata: {}\n\n"
#define NOT_SEEN   "retry: 500\nevent: unseen\ndata: {}\n\n"
#define LEAVING    "retry: 2000\n: leaving\n\n"

#define TAGS_SIZE (READER_OF_MAX * PAGE_ETAG_SIZE + 1) /* digests, with a point between two */

struct live {
    struct web_view view; /* the thread's, as the next three */
    bool down;            /* Redis; it is not asked before: */
    int64_t down_until_ms;
    int64_t look_at_ms; /* the next look, monotonic */
    struct role_ctx *role;
    pthread_t thread;
    struct wake wake;
    atomic_bool ending;

    pthread_mutex_t lock; /* for what follows */
    struct page_cache *cache;
    struct readers readers; /* answered with the lock held */
    bool leaving;
};

/* ---- with the lock held ---------------------------------------------------------------------- */

/* The digests that the client has: those of the last event, or of the answers that it asked for. */
static struct str known_of(const struct http_exchange *x)
{
    struct str id = http_header(x, "Last-Event-ID");
    return id.ptr ? id : http_query(x, "etag");
}

static void tell(struct live *l, struct reader *r, const char *event)
{
    web_reply(l->role, r->x, "live", 200, EVENT_TYPE, str_of(event));
    readers_wait_end(&l->readers, r);
}

static void reader_refuse(struct live *l, struct reader *r, int status, const char *detail)
{
    web_reply_error(l->role, r->x, "live", status, detail);
    readers_wait_end(&l->readers, r);
}

/* Ends the waits that were long enough, and all when we leave. Only a request that was looked at
 * meanwhile is known to be unchanged. */
static void tell_due(struct live *l, int64_t now_ms)
{
    struct reader *r, *after;
    DL_FOREACH_SAFE(l->readers.waiting, r, after)
    {
        if (l->leaving)
            tell(l, r, LEAVING);
        else if (r->due_ms <= now_ms)
            tell(l, r, r->seen_ms >= r->due_ms - WAIT_MS ? UNCHANGED : NOT_SEEN);
    }
}

/* Who is to be looked at now; NULL: nobody. */
static struct reader *reader_next(const struct live *l, int64_t now_ms)
{
    struct reader *r = readers_wait_next(&l->readers, now_ms);
    return r && now_ms >= l->look_at_ms && now_ms - r->seen_ms >= FRESH_MS ? r : NULL;
}

/* The answer that is as good as a new one; NULL: there is none. */
static struct page *fresh(struct live *l, const struct path_ask *ask, int64_t now_ms)
{
    struct page *page = page_cache_get(l->cache, ask->key);
    return page && now_ms - page->at_ms < FRESH_MS ? page : NULL;
}

/* Compares r with the answers that it waits for, if all are fresh. Ends the wait if one is new to
 * it or could not be read. */
static void digests_compare(struct live *l, struct reader *r, int64_t now_ms)
{
    char tags[TAGS_SIZE] = "", event[sizeof(CHANGED) + TAGS_SIZE];
    int64_t seen_ms = INT64_MAX;
    bool readable = true, changed = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct page *page = fresh(l, &r->of[i], now_ms);
        if (!page)
            return;
        size_t len = strlen(tags);
        snprintf(tags + len, sizeof(tags) - len, "%s%s", i > 0 ? "." : "", page->etag);
        readable = readable && page->status != 503;
        changed = changed || !page_is_known(page->etag, known_of(r->x));
        seen_ms = page->at_ms < seen_ms ? page->at_ms : seen_ms;
    }
    r->seen_ms = seen_ms;
    snprintf(event, sizeof(event), CHANGED, tags);
    if (!readable || changed)
        tell(l, r, readable ? event : UNREADABLE);
}

/* One rendering is for all who wait for it. */
static void tell_changed(struct live *l, int64_t now_ms)
{
    struct reader *r, *after;
    DL_FOREACH_SAFE(l->readers.waiting, r, after)
    {
        digests_compare(l, r, now_ms);
    }
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* The caller's. old: what was rendered before, or NULL. */
static struct page *render(struct live *l, const struct path_ask *ask, struct page *old)
{
    int status = 503;
    struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct why why = { "" };
    if (clock_mono_ms() < l->down_until_ms && !ask->path->no_view) {
        buf_puts(&body, "{\"detail\":\"" PATH_UNAVAILABLE "\"}");
    } else {
        status = path_render(&l->view, ask, &body, &why);
        bool up = redis_is_up(l->view.redis);
        if (up == l->down)
            reporter_redis_seen(l->role, up, why.text);
        l->down = !up;
        if (!up && !ask->path->no_view) /* else it was not asked */
            l->down_until_ms = clock_mono_ms() + DOWN_MS;
    }
    if (*why.text)
        log_warn("page_failed", LOG_STR("route", str_of(ask->path->name)),
                 LOG_STR("error", str_of(why.text)));
    if (page_cache_held(l->cache) + body.len > HELD_BYTES) {
        status = 503;
        buf_reset(&body);
        buf_puts(&body, "{\"detail\":\"too much is being read, try again\"}");
    }
    struct str text;
    text.ptr = buf_take(&body, &text.len);
    return page_new(l->cache, old, status, text);
}

/* Makes sure that the cache has a fresh answer, and answers all who ask for the same. True: it was
 * rendered for that, and could be read. */
static bool page_now(struct live *l, const struct path_ask *ask, const struct reader *same)
{
    struct page *made = NULL;
    pthread_mutex_lock(&l->lock);
    struct page *page = fresh(l, ask, clock_mono_ms());
    if (!page) {
        struct page *old = page_cache_get(l->cache, ask->key);
        if (old)
            page_hold(old);
        pthread_mutex_unlock(&l->lock);
        page = made = render(l, ask, old);
        pthread_mutex_lock(&l->lock);
        if (old)
            page_release(old);
        page->at_ms = clock_mono_ms(); /* the end: all who asked meanwhile get it */
        page_cache_put(l->cache, ask->key, page);
    }
    bool is_readable = page->status != 503;
    for (; same; same = same->same) {
        if (page_cache_held(l->cache) > HELD_BYTES / 4 * 3)
            http_end_slowest_reader(same->x);
        web_reply_page(l->role, same->x, ask->path->name, ask->path->type, page);
    }
    if (made)
        page_release(made);
    pthread_mutex_unlock(&l->lock);
    return made && is_readable;
}

/* Answers first and all who ask for the same, and frees them; those who are late have got 503. */
static void readers_answer(struct live *l, struct reader *first, int64_t now_ms)
{
    bool late = (first->same ? first->same : first)->due_ms <= now_ms; /* the newest of them */
    if (!late)
        (void)page_now(l, &first->of[0], first);
    pthread_mutex_lock(&l->lock);
    for (struct reader *r = first, *next; r; r = next) {
        next = r->same;
        if (late)
            web_reply_error(l->role, r->x, r->of[0].path->name, 503, "too late");
        reader_free(r);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Renders what r waits for. The longer that takes, the longer its address pauses. */
static void reader_look(struct live *l, struct reader *r)
{
    int64_t began_ms = clock_mono_ms();
    bool is_rendered = false;
    for (size_t i = 0; i < r->n; i++) {
        role_alive(l->role);
        is_rendered |= page_now(l, &r->of[i], NULL);
    }
    int64_t now_ms = clock_mono_ms(), rest_ms = (now_ms - began_ms) * LOOK_SHARE;
    int64_t all_ms = rest_ms < LOOK_REST_MS ? rest_ms : LOOK_REST_MS;
    pthread_mutex_lock(&l->lock);
    if (is_rendered) { /* else nothing can be read, and the others are to learn of that at once */
        l->look_at_ms = now_ms + (all_ms > LOOK_EVERY_MS ? all_ms : LOOK_EVERY_MS);
        r->client->rests_until_ms = now_ms + (rest_ms < CLIENT_REST_MS ? rest_ms : CLIENT_REST_MS);
    }
    r->seen_ms = began_ms;
    l->readers.looked = NULL;
    pthread_mutex_unlock(&l->lock);
}

static void *live_main(void *arg)
{
    struct live *l = arg;
    while (!atomic_load(&l->ending)) {
        role_alive(l->role);
        wake_reset(&l->wake);
        int64_t now_ms = clock_mono_ms();
        pthread_mutex_lock(&l->lock);
        l->leaving |= role_stopping(l->role);
        tell_due(l, now_ms);
        struct reader *asking = readers_ask_take(&l->readers);
        struct reader *waiting = asking ? NULL : reader_next(l, now_ms);
        l->readers.looked = waiting;
        size_t n_waiting = l->readers.n_waiting;
        pthread_mutex_unlock(&l->lock);
        metrics_set(role_metrics(l->role), METRIC_PAGES_WAITING, NULL, (double)n_waiting);
        if (!asking && !waiting) {
            wake_wait(&l->wake, n_waiting ? LOOK_EVERY_MS : TURN_MS);
            continue;
        }
        if (asking)
            readers_answer(l, asking, now_ms);
        else
            reader_look(l, waiting);
        pthread_mutex_lock(&l->lock);
        tell_changed(l, now_ms);
        readers_tidy(&l->readers, now_ms);
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

/* ---- the outside ----------------------------------------------------------------------------- */

/* Frees the rest when the thread has ended and all are answered. */
static void live_destroy(struct live *l)
{
    wake_clear(&l->wake);
    page_cache_free(l->cache);
    readers_clear(&l->readers);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

enum err live_new(struct live **ret, const struct web_view *view, struct role_ctx *role,
                  struct why *why)
{
    struct live *l = mem_alloc(1, sizeof(*l));
    *l = (struct live){ .view = *view, .role = role, .wake.fd = -1 };
    readers_init(&l->readers);
    l->cache = page_cache_new(CACHE_BYTES, CACHE_PAGES);
    pthread_mutex_init(&l->lock, NULL);
    enum err err = wake_init(&l->wake, why);
    int failure = err ? 0 : pthread_create(&l->thread, NULL, live_main, l);
    if (failure)
        err = why_set(why, ERR_STOP, "pthread_create: %s", strerror(failure));
    if (err)
        live_destroy(l);
    else
        *ret = l;
    return err;
}

void live_free(struct live *l)
{
    struct reader *r;
    if (!l)
        return;
    live_leave(l);
    atomic_store(&l->ending, true);
    wake_up(&l->wake);
    pthread_join(l->thread, NULL);
    tell_due(l, INT64_MAX);
    while ((r = l->readers.asking)) {
        http_reply_error(r->x, 503, "shutting down");
        readers_ask_end(&l->readers, r);
        reader_free(r);
    }
    live_destroy(l);
}

void live_ask(struct live *l, struct http_exchange *x, struct path_ask *ask)
{
    pthread_mutex_lock(&l->lock);
    struct page *page = fresh(l, ask, clock_mono_ms());
    if (page) {
        web_reply_page(l->role, x, ask->path->name, ask->path->type, page);
        path_ask_clear(ask);
    } else {
        struct reader *r = reader_new(&l->readers, x);
        r->of[r->n++] = *ask;
        r->due_ms = clock_mono_ms() + ANSWER_MS;
        readers_ask(&l->readers, r);
    }
    while (l->readers.n_asking > ASKING_MAX) {
        struct reader *last = readers_crowd(&l->readers, l->readers.asking);
        web_reply_error(l->role, last->x, last->of[0].path->name, 503, "too many ask");
        readers_ask_end(&l->readers, last);
        reader_free(last);
    }
    pthread_mutex_unlock(&l->lock);
    wake_up(&l->wake);
}

/* Reads what x waits for. Returns the fault: no path, none at all, too many, or a parameter that
 * the path does not accept; NULL: none. */
static const char *of_parse(struct reader *r)
{
    static const char none[] = "no such path";
    struct headers query;
    http_queries(r->x, &query);
    for (size_t i = 0; i < query.n; i++) {
        if (!str_is(query.at[i].name, "of"))
            continue;
        if (r->n == READER_OF_MAX || !path_ask_parse(&r->of[r->n], query.at[i].value))
            return none;
        if (r->of[r->n++].fault)
            return r->of[r->n - 1].fault;
    }
    return r->n > 0 ? NULL : none;
}

void live_wait(struct live *l, struct http_exchange *x)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&l->lock);
    struct reader *r = reader_new(&l->readers, x);
    const char *fault = of_parse(r);
    r->due_ms = now_ms + WAIT_MS;
    r->seen_ms = INT64_MAX;
    for (size_t i = 0; !fault && i < r->n; i++) {
        const struct page *page = page_cache_get(l->cache, r->of[i].key);
        bool known = page && page_is_known(page->etag, known_of(x));
        /* Else its turn is now, but after those who have waited longer. */
        int64_t at_ms = known ? page->at_ms : now_ms - FRESH_MS;
        r->seen_ms = at_ms < r->seen_ms ? at_ms : r->seen_ms;
    }
    readers_wait(&l->readers, r);
    if (fault)
        reader_refuse(l, r, str_is(str_of(fault), "no such path") ? 404 : 400, fault);
    else if (l->leaving)
        tell(l, r, LEAVING);
    else
        digests_compare(l, r, now_ms);
    if (l->readers.n_waiting > WAITING_MAX)
        reader_refuse(l, readers_crowd(&l->readers, l->readers.waiting), 503, "too many wait");
    pthread_mutex_unlock(&l->lock);
}

void live_leave(struct live *l)
{
    pthread_mutex_lock(&l->lock);
    l->leaving = true;
    pthread_mutex_unlock(&l->lock);
    wake_up(&l->wake);
}
