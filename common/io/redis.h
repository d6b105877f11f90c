/* One connection to Redis for one thread: pipelined commands, timeouts, reconnect with back-off,
 * TLS if hiredis has it. It knows no key names (common/view does), but puts key_prefix before each
 * key. In every command argv[1], and nothing else, is a key. */
#ifndef CRCR_IO_REDIS_H
#define CRCR_IO_REDIS_H

#include "../base/err.h"
#include "../base/str.h"

struct redis;

struct redis_options {
    const char *endpoint; /* host:port */
    const char *login;    /* "user:password" or "password"; NULL or "" for none */
    bool tls;
    const char *ca_file; /* authority of the server's certificate, which must be for the endpoint's
                            host; NULL: the system's */
    const char *key_prefix; /* put before every key of every command and script; NULL for none.
                               Copied */
    int timeout_ms;         /* of connecting, and of a reply; 0: 1,000 */
};

enum redis_type { REDIS_NIL, REDIS_INT, REDIS_STR, REDIS_ARRAY, REDIS_ERROR };

/* A reply, borrowed until the next redis_* call on the same connection. */
struct redis_value {
    enum redis_type type;
    int64_t integer;
    struct str text; /* REDIS_STR (also status replies) and REDIS_ERROR */
    const struct redis_value *items;
    size_t n;
};

/* A Lua script; sha is filled at the first use, without a lock: declare it static _Thread_local (or
 * in what one thread owns), one per .lua file. */
struct redis_script {
    const char *source;
    char sha[41];
};

/* Does not connect yet; ERR_STOP when TLS is asked for and this hiredis has none, ERR_REFUSE when
 * the endpoint is malformed. */
enum err redis_new(struct redis **ret, const struct redis_options *options,
                   struct why *why) MUST_CHECK;
void redis_free(struct redis *r);

/* One command, one reply; not while replies of queued commands are outstanding (ERR_REFUSE).
 * ERR_RETRY: not connected. The next attempt to connect comes after 100 ms … 2 s, or ten times what
 * the last one took (at most 10 s), so that a dead Redis costs its callers almost nothing.
 * ERR_UNKNOWN: the connection broke after the command was sent. A reply of type REDIS_ERROR gives
 * ERR_RETRY for LOADING, READONLY, OOM, CLUSTERDOWN, MASTERDOWN, BUSY, NOREPLICAS, MISCONF and
 * ERR_REFUSE otherwise, with the text in why. */
enum err redis_call(struct redis *r, const struct redis_value **ret, size_t argc,
                    const struct str *argv, struct why *why) MUST_CHECK;
/* Convenience for constant shapes: redis_callf(r, &v, why, n, STR…) through a compound literal. */
#define REDIS_ARGS(...)                                                                            \
    sizeof((const struct str[]){ __VA_ARGS__ }) / sizeof(struct str), (const struct str[])         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Pipelining: queue any number of commands, then read the replies in the same order. */
enum err redis_queue(struct redis *r, size_t argc, const struct str *argv,
                     struct why *why) MUST_CHECK;
/* Queues EVALSHA (EVAL at the first use). After a NOSCRIPT answer redis_collect sends the call
 * again with the source, after all outstanding commands. The first n_keys of argv are keys. */
enum err redis_queue_script(struct redis *r, struct redis_script *script, size_t n_keys,
                            size_t argc, const struct str *argv, struct why *why) MUST_CHECK;
/* Reads the reply of the next queued command. Errors as redis_call; after a connection's ERR_RETRY
 * or ERR_UNKNOWN all replies still queued fail the same way. */
enum err redis_collect(struct redis *r, const struct redis_value **ret, struct why *why) MUST_CHECK;
/* Many commands in one round trip: put them all, then take the replies until there are no more.
 *
 *     struct redis_batch b = { .redis = r, .why = why };
 *     for (…) redis_batch_put(&b, REDIS_ARGS(…));
 *     while ((reply = redis_batch_next(&b))) …
 *     return b.err;
 *
 * After the first error nothing more is sent, and outstanding replies are read and dropped:
 * otherwise the next command would read them. */
struct redis_batch {
    struct redis *redis;
    struct why *why;
    enum err err;       /* the first; why has its text */
    size_t outstanding; /* replies */
};
void redis_batch_put(struct redis_batch *b, size_t argc, const struct str *argv);
/* In the order of the commands, borrowed as above. NULL: there are no more, or one failed. */
const struct redis_value *redis_batch_next(struct redis_batch *b);
/* One script, one reply. */
enum err redis_call_script(struct redis *r, struct redis_script *script, size_t n_keys, size_t argc,
                           const struct str *argv, const struct redis_value **ret,
                           struct why *why) MUST_CHECK;
/* Whether the last error reply had that code, its first word (https://redis.io/docs, "RESP, simple
 * errors"): WRONGTYPE, for example, or one of our scripts' own. Ask right after ERR_REFUSE. */
bool redis_failed_with(const struct redis *r, const char *code);
#define REDIS_CODE_SIZE 24
/* False after a failure until a call works again. Sends nothing. */
bool redis_is_up(const struct redis *r);

#endif
