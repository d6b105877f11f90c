#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../base/mem.h"
#include "redis_inner.h"

enum { TIMEOUT_DEFAULT_MS = 1000, BACKOFF_FIRST_MS = 100 };

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
    struct host_port at;
    struct redis_tls *tls = NULL;
    enum err err = host_port_parse(options->endpoint, &at, why);
    if (!err && options->tls)
        err = redis_tls_new(&tls, options, at.host, why);
    if (err)
        return err;
    struct redis *r = mem_alloc(1, sizeof(*r));
    r->at = at;
    r->tls = tls;
    set_login(r, options->login);
    r->key_prefix = mem_dup(options->key_prefix ? options->key_prefix : "");
    r->connect_timeout_ms =
        options->connect_timeout_ms ? options->connect_timeout_ms : TIMEOUT_DEFAULT_MS;
    r->command_timeout_ms =
        options->command_timeout_ms ? options->command_timeout_ms : TIMEOUT_DEFAULT_MS;
    r->backoff_ms = BACKOFF_FIRST_MS;
    r->up = true;
    *ret = r;
    return OK;
}

/* ---- what waits for its reply ------------------------------------------------------- */

static void pending_free(struct redis_pending *p)
{
    if (!p)
        return;
    if (p->reply)
        freeReplyObject(p->reply);
    free(p->argv);
    free(p);
}

/* Copies the arguments: with the prefix before each key, and of a script in case it must be called
 * again. The keys are n_keys from the first on. */
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

static enum err enqueue(struct redis *r, struct redis_pending *p, enum err err)
{
    if (err) {
        r->up = false;
        pending_free(p);
        return err;
    }
    DL_APPEND(r->order, p);
    DL_APPEND2(r->wire, p, wire_prev, wire_next);
    return OK;
}

enum err redis_queue(struct redis *r, size_t argc, const struct str *argv, struct why *why)
{
    enum err err = redis_link_ready(r, why);
    if (err)
        return err;
    struct redis_pending *p = mem_alloc(1, sizeof(*p));
    p->argc = argc;
    p->argv = copy_args(r, 1, argc > 1, argc, argv);
    return enqueue(r, p, redis_link_append(r, argc, p->argv, why));
}

enum err redis_queue_script(struct redis *r, struct redis_script *script, size_t n_keys,
                            size_t argc, const struct str *argv, struct why *why)
{
    enum err err = redis_link_ready(r, why);
    if (err)
        return err;
    struct redis_pending *p = mem_alloc(1, sizeof(*p));
    p->script = script;
    p->n_keys = n_keys;
    p->argc = argc;
    p->argv = copy_args(r, 0, n_keys, argc, argv);
    return enqueue(r, p, redis_script_append(r, p, why));
}

/* ---- replies ------------------------------------------------------------------------ */

static void learn_sha(struct redis_script *script, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STRING)
        str_copy(script->sha, sizeof(script->sha), (struct str){ reply->str, (size_t)reply->len });
}

/* Reads one reply and gives it to whom it belongs. */
static void read_one(struct redis *r)
{
    redisReply *reply = redis_link_read(r);
    if (!reply)
        return;
    struct redis_pending *p = r->wire;
    DL_DELETE2(r->wire, p, wire_prev, wire_next);
    if (p->learns_sha) {
        learn_sha(p->script, reply);
        freeReplyObject(reply);
        pending_free(p);
    } else if (redis_script_repair(r, p, reply)) {
        freeReplyObject(reply);
    } else {
        p->reply = reply;
    }
}

enum err redis_collect(struct redis *r, const struct redis_value **ret, struct why *why)
{
    struct redis_pending *p = r->order;
    if (!p)
        return why_set(why, ERR_REFUSE, "no reply is outstanding");
    while (!p->reply && !p->err)
        read_one(r);
    DL_DELETE(r->order, p);
    pending_free(r->last);
    r->last = p;
    if (p->err)
        return why_set(why, p->err, "%s", r->broken.text);
    enum err err = redis_value_of(r, p->reply, ret, why);
    r->up = err != ERR_RETRY;
    return err;
}

enum err redis_call(struct redis *r, const struct redis_value **ret, size_t argc,
                    const struct str *argv, struct why *why)
{
    if (r->order)
        return why_set(why, ERR_REFUSE, "collect the outstanding replies first");
    enum err err = redis_queue(r, argc, argv, why);
    return err ? err : redis_collect(r, ret, why);
}

enum err redis_call_script(struct redis *r, struct redis_script *script, size_t n_keys, size_t argc,
                           const struct str *argv, const struct redis_value **ret, struct why *why)
{
    if (r->order)
        return why_set(why, ERR_REFUSE, "collect the outstanding replies first");
    enum err err = redis_queue_script(r, script, n_keys, argc, argv, why);
    return err ? err : redis_collect(r, ret, why);
}

bool redis_is_up(const struct redis *r)
{
    return r->up;
}

void redis_free(struct redis *r)
{
    if (!r)
        return;
    struct redis_pending *p, *next;
    DL_FOREACH_SAFE2(r->wire, p, next, wire_next)
    {
        if (p->learns_sha)
            pending_free(p);
    }
    DL_FOREACH_SAFE(r->order, p, next)
    {
        pending_free(p);
    }
    pending_free(r->last);
    redis_link_close(r);
    redis_tls_free(r->tls);
    free(r->values);
    free(r->args);
    free(r->lens);
    free(r->user);
    free(r->password);
    free(r->key_prefix);
    free(r);
}
