/* A test group's Redis: a server of its own, a connection, and emptying between its tests. */
#ifndef CRCR_TESTS_REDIS_FIXTURE_H
#define CRCR_TESTS_REDIS_FIXTURE_H

#include <stdlib.h>

#include "common/io/redis.h"
#include "tests/unit/support/consistent_view.h"
#include "tests/unit/support/redis_server.h"

struct redis_fixture {
    struct redis_server server;
    struct redis *redis;
};

/* Group set-up and tear-down; *state is the fixture. */
static inline int redis_fixture_start(void **state)
{
    struct redis_fixture *f = calloc(1, sizeof(*f));
    redis_server_start(&f->server);
    struct redis_options options = { .endpoint = f->server.endpoint, .key_prefix = "crcr:" };
    assert_int_equal(redis_new(&f->redis, &options, NULL), OK);
    *state = f;
    return 0;
}

static inline int redis_fixture_stop(void **state)
{
    struct redis_fixture *f = *state;
    redis_free(f->redis);
    redis_server_kill(&f->server);
    free(f);
    return 0;
}

/* Set-up of a test: nothing is there, as after a flush. */
static inline int redis_fixture_empty(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    return !!redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("FLUSHALL")), NULL);
}

/* Set-up of a test: nothing is there but the epoch. */
static inline int redis_fixture_consistent(void **state)
{
    struct redis_fixture *f = *state;
    return redis_fixture_empty(state) || consistent_view(f->redis);
}

#endif
