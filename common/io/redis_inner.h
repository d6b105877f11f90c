/* What the files of the Redis client share; nobody else includes this. */
#ifndef CRCR_IO_REDIS_INNER_H
#define CRCR_IO_REDIS_INNER_H

#include "host_port.h"
#include "redis.h"

struct redisContext;
struct redisReply;
struct redis_tls;

/* One command whose reply is outstanding or not collected yet. It stands in two lists: `order`, in
 * which the caller collects, and `wire`, in which replies arrive. They differ only after a script
 * was missing: the call is made again and its reply comes last, but is collected in its place. */
struct redis_pending {
    struct redis_pending *prev, *next;           /* order */
    struct redis_pending *wire_prev, *wire_next; /* wire */
    struct redis_script *script;                 /* NULL for a plain command */
    bool learns_sha; /* a SCRIPT LOAD of ours: its reply is the sha, nobody collects it */
    bool repaired;
    size_t n_keys;
    size_t argc;
    struct str *argv; /* a copy, in one block with the texts; keys with their prefix */
    struct redisReply *reply;
    enum err err; /* the connection broke */
};

struct redis {
    struct host_port at;
    char *user;
    char *password;
    char *key_prefix;
    struct redis_tls *tls; /* NULL: plain */
    int connect_timeout_ms;
    int command_timeout_ms;

    struct redisContext *link; /* NULL: not connected */
    int64_t retry_at_ms;       /* monotonic; not tried before */
    int backoff_ms;
    bool leave; /* this server is a replica now: connect anew when nothing is outstanding */
    bool up;
    struct why broken; /* why there is no connection */

    struct redis_pending *order;
    struct redis_pending *wire;
    struct redis_pending *last; /* collected; what the caller looks at */
    struct redis_value *values; /* the reply of last, as the caller sees it */
    size_t n_values;
    const char **args; /* for hiredis */
    size_t *lens;
    size_t n_args;
};

/* redis_link.c: the connection. */
/* Connects if need be and if it is time. ERR_RETRY: not connected. */
enum err redis_link_ready(struct redis *r, struct why *why) MUST_CHECK;
enum err redis_link_append(struct redis *r, size_t argc, const struct str *argv,
                           struct why *why) MUST_CHECK;
/* The next reply on the wire, the caller's; NULL when the connection broke. */
struct redisReply *redis_link_read(struct redis *r);
void redis_link_close(struct redis *r);

/* redis_script.c: scripts by SHA. */
enum err redis_script_append(struct redis *r, struct redis_pending *p, struct why *why) MUST_CHECK;
/* True when the reply says that the script is missing and the call has been made again. */
bool redis_script_repair(struct redis *r, struct redis_pending *p, const struct redisReply *reply);

/* redis_value.c: replies as the caller sees them; *ret lives in r. */
enum err redis_value_of(struct redis *r, const struct redisReply *reply,
                        const struct redis_value **ret, struct why *why) MUST_CHECK;
/* What to do about "LOADING Redis is loading …": ERR_RETRY or ERR_REFUSE. */
enum err redis_error_kind(struct str text);

/* redis_tls.c */
enum err redis_tls_new(struct redis_tls **ret, const struct redis_options *options,
                       const char *host, struct why *why) MUST_CHECK;
void redis_tls_free(struct redis_tls *tls);
enum err redis_tls_start(struct redis_tls *tls, struct redisContext *link,
                         struct why *why) MUST_CHECK;

#endif
