#include "redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "../base/clock.h"
#include "../base/mem.h"
#include "host_port.h"
#include "redis_tls.h"

/* An attempt that fails slowly (packets dropped on the way) is followed by a pause of COST times
 * its length, so that at most a tenth of the caller's time goes into it; but what works again is
 * not left alone for longer than PAUSE_MAX_MS. */
enum {
    TIMEOUT_DEFAULT_MS = 1000,
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 2000,
    COST = 10,
    PAUSE_MAX_MS = 10000,
};

/* One command whose reply was not collected yet. Replies come in the order of the list. */
struct pending {
    struct pending *prev, *next;
    struct redis_script *script; /* NULL for a plain command */
    bool is_load; /* our SCRIPT LOAD, behind the call: its reply is the sha, nobody collects it */
    size_t argc;
    struct str *argv; /* a copy, in one block with the texts; keys with their prefix */
    redisReply *reply;
    enum err err; /* the connection broke */
};

struct redis {
    struct host_port at;
    char *user;
    char *password;
    char *key_prefix;
    struct redis_tls *tls; /* NULL: plain */
    int timeout_ms;

    redisContext *link;  /* NULL: not connected */
    int64_t retry_at_ms; /* monotonic; not tried before */
    int backoff_ms;
    bool leave; /* this server is a replica now: connect anew when nothing is outstanding */
    bool up;
    char code[REDIS_CODE_SIZE]; /* of the last reply that was an error */
    struct why broken;          /* why there is no connection */

    struct pending *pending;
    struct pending *last;       /* collected; what the caller looks at */
    struct redis_value *values; /* the reply of last, as the caller sees it */
    size_t n_values;
    const char **args; /* for hiredis */
    size_t *lens;
    size_t n_args;
};

/* ---- the connection: made when needed, never waited for ----------------------------- */

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

static void link_close(struct redis *r)
{
    if (r->link)
        redisFree(r->link);
    r->link = NULL;
    r->leave = false;
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
    if (!link)
        return why_set(why, ERR_RETRY, "out of memory");
    if (link->err)
        return why_set(why, ERR_RETRY, "redis at %s:%s: %s", r->at.host, r->at.port, link->errstr);
    if (redisSetTimeout(link, timeval_of(r->timeout_ms)) != REDIS_OK)
        return why_set(why, ERR_RETRY, "redis: %s", link->errstr);
    redisEnableKeepAlive(link);
    enum err err = r->tls ? redis_tls_start(r->tls, link, why) : OK;
    return err ? err : authenticate(r, link, why);
}

/* With nothing outstanding the other side has nothing to say but that it hangs up (over TLS it may
 * send session tickets). */
static bool has_hung_up(const struct redis *r)
{
    char byte;
    ssize_t n = recv(r->link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n > 0 && !r->tls) || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Connects if need be and if it is time. ERR_RETRY: not connected. */
static enum err link_ready(struct redis *r, struct why *why)
{
    if (r->link && !r->pending && (r->leave || has_hung_up(r)))
        link_close(r);
    if (r->link)
        return OK;
    int64_t began_ms = clock_mono_ms();
    if (began_ms < r->retry_at_ms)
        return why_set(why, ERR_RETRY, "%s", r->broken.text);
    redisContext *link =
        redisConnectWithTimeout(r->at.host, atoi(r->at.port), timeval_of(r->timeout_ms));
    if (!set_up(r, link, &r->broken)) {
        r->link = link;
        return OK;
    }
    if (link)
        redisFree(link);
    pause_before_next(r, clock_mono_ms() - began_ms);
    return why_set(why, ERR_RETRY, "%s", r->broken.text);
}

static enum err link_append(struct redis *r, size_t argc, const struct str *argv, struct why *why)
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

/* The next reply, the caller's; NULL when the connection broke. */
static redisReply *link_read(struct redis *r)
{
    void *reply = NULL;
    int64_t began_ms = clock_mono_ms();
    if (redisGetReply(r->link, &reply) == REDIS_OK) {
        r->backoff_ms = BACKOFF_MIN_MS;
        return reply;
    }
    why_set(&r->broken, ERR_UNKNOWN, "redis at %s:%s: %s", r->at.host, r->at.port, r->link->errstr);
    link_close(r);
    /* Everything outstanding has been handed to the kernel: nobody knows what became of it. */
    struct pending *p;
    DL_FOREACH(r->pending, p)
    {
        if (!p->reply)
            p->err = ERR_UNKNOWN;
    }
    pause_before_next(r, clock_mono_ms() - began_ms);
    return NULL;
}

/* ---- replies ------------------------------------------------------------------------ */

static enum err error_kind(struct str text)
{
    /* The server is there and will take the same command later, or another server will. */
    static const char *const passing[] = { "LOADING ",     "READONLY ",   "OOM ",
                                           "CLUSTERDOWN ", "MASTERDOWN ", "BUSY ",
                                           "NOREPLICAS ",  "MISCONF ",    "TRYAGAIN " };
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (str_starts(text, passing[i]))
            return ERR_RETRY;
    return ERR_REFUSE;
}

static size_t element_count(const redisReply *reply)
{
    size_t n = 1;
    if (reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            n += element_count(reply->element[i]);
    return n;
}

/* Fills to; *room is the first value not taken yet. The items of an array stand side by side. */
static void convert(const redisReply *reply, struct redis_value *to, struct redis_value **room)
{
    static const enum redis_type types[] = {
        [REDIS_REPLY_INTEGER] = REDIS_INT, [REDIS_REPLY_ARRAY] = REDIS_ARRAY,
        [REDIS_REPLY_ERROR] = REDIS_ERROR, [REDIS_REPLY_NIL] = REDIS_NIL,
        [REDIS_REPLY_STRING] = REDIS_STR,  [REDIS_REPLY_STATUS] = REDIS_STR,
    };
    *to = (struct redis_value){ .type = reply->type <= REDIS_REPLY_ERROR ? types[reply->type]
                                                                         : REDIS_STR,
                                .integer = reply->integer };
    if (to->type == REDIS_STR || to->type == REDIS_ERROR)
        to->text = (struct str){ reply->str, (size_t)reply->len };
    if (to->type != REDIS_ARRAY)
        return;
    struct redis_value *items = *room;
    *room += reply->elements;
    for (size_t i = 0; i < reply->elements; i++)
        convert(reply->element[i], &items[i], room);
    to->items = items;
    to->n = reply->elements;
}

/* The reply as the caller sees it: *ret lives in r. */
static enum err value_of(struct redis *r, const redisReply *reply, const struct redis_value **ret,
                         struct why *why)
{
    struct str text = { reply->str, reply->str ? (size_t)reply->len : 0 };
    if (reply->type == REDIS_REPLY_ERROR) {
        struct str rest = text, code = STR_NONE;
        (void)str_split(&rest, ' ', &code);
        (void)str_copy(r->code, sizeof(r->code), code);
        r->leave = r->leave || str_is(code, "READONLY");
        return why_set(why, error_kind(text), "redis: %.*s", STR_ARG(text));
    }
    size_t n = element_count(reply);
    if (n > r->n_values) {
        r->values = mem_resize(r->values, n, sizeof(*r->values));
        r->n_values = n;
    }
    struct redis_value *room = r->values + 1;
    convert(reply, r->values, &room);
    *ret = r->values;
    return OK;
}

/* ---- commands and scripts ----------------------------------------------------------- */

static void pending_free(struct pending *p)
{
    if (!p)
        return;
    if (p->reply)
        freeReplyObject(p->reply);
    free(p->argv);
    free(p);
}

/* Copies the arguments: with the prefix before each key, and of a script in case it must be called
 * again. */
static struct str *copy_args(const struct redis *r, size_t first_key, size_t n_keys, size_t argc,
                             const struct str *argv)
{
    struct str prefix = str_of(r->key_prefix);
    size_t bytes = n_keys * prefix.len;
    for (size_t i = 0; i < argc; i++)
        bytes += argv[i].len;
    struct str *copy = mem_alloc(1, argc * sizeof(*copy) + bytes + 1);
    char *to = (char *)(copy + argc);
    for (size_t i = 0; i < argc; i++) {
        size_t before = i >= first_key && i < first_key + n_keys ? prefix.len : 0;
        copy[i] = (struct str){ to, before + argv[i].len };
        if (before)
            memcpy(to, prefix.ptr, before);
        if (argv[i].len)
            memcpy(to + before, argv[i].ptr, argv[i].len);
        to += copy[i].len;
    }
    return copy;
}

/* The keys are n_keys from the first on. */
static enum err queue(struct redis *r, struct redis_script *script, size_t first_key, size_t n_keys,
                      size_t argc, const struct str *argv, struct why *why)
{
    enum err err = link_ready(r, why);
    if (err)
        return err;
    struct pending *p = mem_alloc(1, sizeof(*p));
    p->script = script;
    p->argc = argc;
    p->argv = copy_args(r, first_key, n_keys, argc, argv);
    err = link_append(r, argc, p->argv, why);
    if (err) {
        r->up = false;
        pending_free(p);
        return err;
    }
    DL_APPEND(r->pending, p);
    return OK;
}

enum err redis_queue(struct redis *r, size_t argc, const struct str *argv, struct why *why)
{
    return queue(r, NULL, 1, argc > 1, argc, argv, why);
}

/* EVALSHA sha n_keys …; the first time EVAL source n_keys …, so that nothing waits for the sha. */
enum err redis_queue_script(struct redis *r, struct redis_script *script, size_t n_keys,
                            size_t argc, const struct str *argv, struct why *why)
{
    bool named = script->sha[0] != '\0';
    struct str *all = mem_alloc(3 + argc, sizeof(*all));
    all[0] = named ? STR_LIT("EVALSHA") : STR_LIT("EVAL");
    all[1] = str_of(named ? script->sha : script->source);
    all[2] = STR_NUMBER((int64_t)n_keys);
    for (size_t i = 0; i < argc; i++)
        all[3 + i] = argv[i];
    enum err err = queue(r, script, 3, n_keys, 3 + argc, all, why);
    free(all);
    if (err || named)
        return err;
    const struct str load[] = { STR_LIT("SCRIPT"), STR_LIT("LOAD"), str_of(script->source) };
    if (!queue(r, script, 0, 0, 3, load, NULL))
        r->pending->prev->is_load = true; /* the last */
    return OK;
}

/* The server lacks the script: the call is made again with the source. Its reply comes behind all
 * that is outstanding, which is read before. */
static void call_again(struct redis *r, struct pending *p)
{
    if (!r->link) {
        p->err = ERR_UNKNOWN;
        return;
    }
    p->argv[0] = STR_LIT("EVAL");
    p->argv[1] = str_of(p->script->source);
    if (link_append(r, p->argc, p->argv, NULL))
        return;
    freeReplyObject(p->reply);
    p->reply = NULL;
    for (struct pending *q = p->next; q; q = q->next)
        if (!q->reply && !q->err)
            q->reply = link_read(r);
    if (!p->err)
        p->reply = link_read(r);
}

static void loads_collect(struct redis *r)
{
    for (struct pending *p; (p = r->pending) && p->is_load; pending_free(p)) {
        if (!p->reply && !p->err)
            p->reply = link_read(r);
        if (p->reply && p->reply->type == REDIS_REPLY_STRING)
            str_copy(p->script->sha, sizeof(p->script->sha),
                     (struct str){ p->reply->str, (size_t)p->reply->len });
        DL_DELETE(r->pending, p);
    }
}

enum err redis_collect(struct redis *r, const struct redis_value **ret, struct why *why)
{
    struct pending *p = r->pending;
    if (!p)
        return why_set(why, ERR_REFUSE, "no reply is outstanding");
    if (!p->reply && !p->err)
        p->reply = link_read(r);
    if (p->reply && p->script && p->reply->type == REDIS_REPLY_ERROR &&
        str_starts((struct str){ p->reply->str, (size_t)p->reply->len }, "NOSCRIPT"))
        call_again(r, p);
    DL_DELETE(r->pending, p);
    pending_free(r->last);
    r->last = p;
    enum err err = p->err;
    if (err) {
        why_set(why, err, "%s", r->broken.text);
    } else {
        err = value_of(r, p->reply, ret, why);
        r->up = err != ERR_RETRY;
    }
    loads_collect(r);
    return err;
}

void redis_batch_put(struct redis_batch *b, size_t argc, const struct str *argv)
{
    if (b->err)
        return;
    b->err = redis_queue(b->redis, argc, argv, b->why);
    b->outstanding += !b->err;
}

const struct redis_value *redis_batch_next(struct redis_batch *b)
{
    while (b->outstanding > 0) {
        const struct redis_value *reply;
        enum err err = redis_collect(b->redis, &reply, b->err ? NULL : b->why);
        b->outstanding--;
        if (!b->err)
            b->err = err;
        if (!b->err)
            return reply;
    }
    return NULL;
}

enum err redis_call(struct redis *r, const struct redis_value **ret, size_t argc,
                    const struct str *argv, struct why *why)
{
    if (r->pending)
        return why_set(why, ERR_REFUSE, "collect the outstanding replies first");
    enum err err = redis_queue(r, argc, argv, why);
    return err ? err : redis_collect(r, ret, why);
}

enum err redis_call_script(struct redis *r, struct redis_script *script, size_t n_keys, size_t argc,
                           const struct str *argv, const struct redis_value **ret, struct why *why)
{
    if (r->pending)
        return why_set(why, ERR_REFUSE, "collect the outstanding replies first");
    enum err err = redis_queue_script(r, script, n_keys, argc, argv, why);
    return err ? err : redis_collect(r, ret, why);
}

/* ---- life --------------------------------------------------------------------------- */

/* "user:password" or "password". */
static void set_login(struct redis *r, const char *login)
{
    if (!login || !*login)
        return;
    const char *colon = strchr(login, ':');
    if (colon && colon > login)
        r->user = str_dup((struct str){ login, (size_t)(colon - login) });
    r->password = mem_dup(colon ? colon + 1 : login);
}

enum err redis_new(struct redis **ret, const struct redis_options *options, struct why *why)
{
    struct redis *r = mem_alloc(1, sizeof(*r));
    enum err err = host_port_parse(options->endpoint, &r->at, why);
    if (!err && options->tls)
        err = redis_tls_new(&r->tls, r->at.host, options->ca_file, why);
    if (err) {
        free(r);
        return err;
    }
    set_login(r, options->login);
    r->key_prefix = mem_dup(options->key_prefix ? options->key_prefix : "");
    r->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_DEFAULT_MS;
    r->backoff_ms = BACKOFF_MIN_MS;
    r->up = true;
    *ret = r;
    return OK;
}

bool redis_failed_with(const struct redis *r, const char *code)
{
    return strcmp(r->code, code) == 0;
}

bool redis_is_up(const struct redis *r)
{
    return r->up;
}

void redis_free(struct redis *r)
{
    if (!r)
        return;
    struct pending *p, *next;
    DL_FOREACH_SAFE(r->pending, p, next)
    {
        pending_free(p);
    }
    pending_free(r->last);
    link_close(r);
    redis_tls_free(r->tls);
    free(r->values);
    free(r->args);
    free(r->lens);
    free(r->user);
    mem_free_secret(r->password);
    free(r->key_prefix);
    free(r);
}
