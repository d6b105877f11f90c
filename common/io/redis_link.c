/* The connection: made when needed, never waited for. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "redis_inner.h"

/* An attempt that fails slowly (packets dropped on the way) is followed by a pause of COST times
 * its length, so that at most a tenth of the caller's time goes into it; but what works again is
 * not left alone for longer than PAUSE_MAX_MS. */
enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 2000, COST = 10, PAUSE_MAX_MS = 10000 };

static struct timeval timeval_of(int ms)
{
    return (struct timeval){ ms / 1000, ms % 1000 * 1000 };
}

static void pause_before_next(struct redis *r, int64_t attempt_ms)
{
    int64_t pause_ms = attempt_ms * COST > r->backoff_ms ? attempt_ms * COST : r->backoff_ms;
    if (pause_ms > PAUSE_MAX_MS)
        pause_ms = PAUSE_MAX_MS;
    r->retry_at_ms = clock_mono_ms() + pause_ms;
    r->backoff_ms = r->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : r->backoff_ms * 2;
    r->up = false;
}

void redis_link_close(struct redis *r)
{
    if (r->link)
        redisFree(r->link);
    r->link = NULL;
    r->leave = false;
}

/* Everything outstanding has been handed to the kernel: nobody knows what became of it. */
static void fail_outstanding(struct redis *r)
{
    struct redis_pending *p, *next;
    DL_FOREACH_SAFE2(r->wire, p, next, wire_next)
    {
        DL_DELETE2(r->wire, p, wire_prev, wire_next);
        p->err = ERR_UNKNOWN;
        if (p->learns_sha)
            free(p);
    }
}

static enum err authenticate(struct redis *r, redisContext *link, struct why *why)
{
    const char *argv[] = { "AUTH", r->user ? r->user : r->password, r->password };
    if (!r->password)
        return OK;
    redisReply *reply = redisCommandArgv(link, r->user ? 3 : 2, argv, NULL);
    if (!reply)
        return why_set(why, ERR_RETRY, "redis: %s", link->errstr);
    enum err err = reply->type != REDIS_REPLY_ERROR
                       ? OK
                       : why_set(why, ERR_RETRY, "redis refused the login: %s", reply->str);
    freeReplyObject(reply);
    return err;
}

static enum err set_up(struct redis *r, redisContext *link, struct why *why)
{
    if (link->err)
        return why_set(why, ERR_RETRY, "redis at %s:%s: %s", r->at.host, r->at.port, link->errstr);
    if (redisSetTimeout(link, timeval_of(r->command_timeout_ms)) != REDIS_OK)
        return why_set(why, ERR_RETRY, "redis: %s", link->errstr);
    redisEnableKeepAlive(link);
    enum err err = r->tls ? redis_tls_start(r->tls, link, why) : OK;
    return err ? err : authenticate(r, link, why);
}

static enum err try_connect(struct redis *r, struct why *why)
{
    int64_t began_ms = clock_mono_ms();
    redisContext *link =
        redisConnectWithTimeout(r->at.host, atoi(r->at.port), timeval_of(r->connect_timeout_ms));
    enum err err =
        link ? set_up(r, link, &r->broken) : why_set(&r->broken, ERR_RETRY, "out of memory");
    if (!err) {
        r->link = link;
        return OK;
    }
    if (link)
        redisFree(link);
    pause_before_next(r, clock_mono_ms() - began_ms);
    return why_set(why, ERR_RETRY, "%s", r->broken.text);
}

/* With nothing outstanding the other side has nothing to say but that it hangs up (over TLS it may
 * send session tickets). */
static bool has_hung_up(const struct redis *r)
{
    char byte;
    ssize_t n = recv(r->link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n > 0 && !r->tls) || (n < 0 && errno != EAGAIN && errno != EINTR);
}

enum err redis_link_ready(struct redis *r, struct why *why)
{
    if (r->link && !r->wire && (r->leave || has_hung_up(r)))
        redis_link_close(r);
    if (r->link)
        return OK;
    if (clock_mono_ms() < r->retry_at_ms)
        return why_set(why, ERR_RETRY, "%s", r->broken.text);
    return try_connect(r, why);
}

enum err redis_link_append(struct redis *r, size_t argc, const struct str *argv, struct why *why)
{
    if (argc > r->n_args) {
        r->args = mem_resize(r->args, argc, sizeof(*r->args));
        r->lens = mem_resize(r->lens, argc, sizeof(*r->lens));
        r->n_args = argc;
    }
    for (size_t i = 0; i < argc; i++) {
        r->args[i] = argv[i].ptr ? argv[i].ptr : "";
        r->lens[i] = argv[i].len;
    }
    if (redisAppendCommandArgv(r->link, (int)argc, r->args, r->lens) == REDIS_OK)
        return OK;
    return why_set(why, ERR_RETRY, "redis: %s", r->link->errstr);
}

redisReply *redis_link_read(struct redis *r)
{
    void *reply = NULL;
    int64_t began_ms = clock_mono_ms();
    if (redisGetReply(r->link, &reply) == REDIS_OK) {
        r->backoff_ms = BACKOFF_MIN_MS;
        return reply;
    }
    why_set(&r->broken, ERR_UNKNOWN, "redis at %s:%s: %s", r->at.host, r->at.port, r->link->errstr);
    redis_link_close(r);
    fail_outstanding(r);
    pause_before_next(r, clock_mono_ms() - began_ms);
    return NULL;
}
