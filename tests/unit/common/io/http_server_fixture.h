/* A server whose handlers the tests steer; included by http_server*_test.c. */
#ifndef CRCR_TESTS_HTTP_SERVER_FIXTURE_H
#define CRCR_TESTS_HTTP_SERVER_FIXTURE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "common/io/http_server.h"
#include "tests/unit/support/http_fixture.h"

enum { HELD_MAX = 2000, SMALL_BODY = 1000, IN_FLIGHT = 4 << 20, DEADLINE_MS = 150, CROWD_MAX = 32 };

struct fixture {
    struct http_server *server;
    struct http_client *client;
    int port;
    pthread_mutex_t lock;
    struct http_exchange *held[HELD_MAX]; /* what `hold` took and nobody has answered yet */
    size_t n_held;
    atomic_int handled, begun;
    atomic_int refused_by_server; /* the last status */
    atomic_int released;          /* what was lent */
    atomic_bool blocking;
};

static void on_echo(void *opaque, struct http_exchange *x)
{
    struct fixture *f = opaque;
    f->handled++;
    http_reply(x, 200, "text/plain", NULL, http_body(x));
}

static void on_describe(void *opaque, struct http_exchange *x)
{
    char text[512];
    (void)opaque;
    snprintf(text, sizeof(text), "%.*s %.*s q=%.*s h=%.*s none=%d", STR_ARG(http_method(x)),
             STR_ARG(http_path(x)), STR_ARG(http_query(x, "q")), STR_ARG(http_header(x, "x-test")),
             !http_header(x, "x-absent").ptr);
    http_reply(x, 200, "text/plain", NULL, str_of(text));
}

static void on_hold(void *opaque, struct http_exchange *x)
{
    struct fixture *f = opaque;
    pthread_mutex_lock(&f->lock);
    f->held[f->n_held++] = x;
    pthread_mutex_unlock(&f->lock);
}

static void *answer_soon(void *x)
{
    http_reply(x, 202, NULL, NULL, STR_LIT("{\"ok\":true}"));
    return NULL;
}

/* Answers from another thread, racing with the suspension. */
static void on_other_thread(void *opaque, struct http_exchange *x)
{
    pthread_t thread;
    (void)opaque;
    assert_int_equal(pthread_create(&thread, NULL, answer_soon, x), 0);
    pthread_detach(thread);
}

enum { RACE_MS = 20 };

static void *answer_at_the_deadline(void *opaque)
{
    struct http_exchange *x = opaque;
    int64_t until_us = clock_mono_us() + RACE_MS * 1000;
    while (clock_mono_us() < until_us)
        sched_yield();
    http_reply(x, 200, NULL, NULL, http_body(x));
    return NULL;
}

static void on_race(void *opaque, struct http_exchange *x)
{
    pthread_t thread;
    (void)opaque;
    assert_int_equal(pthread_create(&thread, NULL, answer_at_the_deadline, x), 0);
    pthread_detach(thread);
}

static void on_take(void *opaque, struct http_exchange *x)
{
    size_t len;
    (void)opaque;
    char *body = http_take_body(x, &len);
    assert_int_equal(http_body(x).len, 0);
    http_reply(x, 200, NULL, NULL, (struct str){ body, len });
    free(body);
}

/* Keeps the server's thread busy until the test says so. */
static void on_block(void *opaque, struct http_exchange *x)
{
    struct fixture *f = opaque;
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    f->blocking = true;
    while (f->blocking && clock_mono_ms() < until_ms)
        sched_yield();
    http_reply(x, 200, NULL, NULL, STR_NONE);
}

enum { LENT_BYTES = 1000000 };

static void on_release(void *opaque)
{
    ((struct fixture *)opaque)->released++;
}

static void on_lend(void *opaque, struct http_exchange *x)
{
    static const char lent[LENT_BYTES];
    struct fixture *f = opaque;
    if (http_query(x, "crowded").ptr)
        http_end_slowest_reader(x);
    http_reply_lent(x, 200, "text/plain", NULL, (struct str){ lent, LENT_BYTES }, on_release, f);
}

static void begin_refuse(void *opaque, struct http_exchange *x)
{
    struct fixture *f = opaque;
    f->begun++;
    if (!http_header(x, "x-test").ptr)
        http_reply_error(x, 401, "who are \"you\"?");
}

static const struct http_route routes[] = {
    { "POST", "/echo", NULL, on_echo, SMALL_BODY, 0, 0 },
    { "POST", "/big", NULL, on_echo, 64 << 20, 0, 0 },
    { "GET", "/describe", NULL, on_describe, 0, 0, 0 },
    { "PUT", "/describe", NULL, on_describe, 0, 0, 0 },
    { "POST", "/hold", NULL, on_hold, 64 << 20, 0, 0 },
    { "GET", "/deadline", NULL, on_hold, 0, DEADLINE_MS, 0 },
    { "POST", "/thread", NULL, on_other_thread, SMALL_BODY, 8000, 0 },
    { "POST", "/race", NULL, on_race, SMALL_BODY, RACE_MS, 0 },
    { "POST", "/take", NULL, on_take, SMALL_BODY, 0, 0 },
    { "POST", "/guarded", begin_refuse, on_echo, 64 << 20, 0, 0 },
    { "POST", "/soon", NULL, on_echo, SMALL_BODY, 0, 300 },
    { "GET", "/lend", NULL, on_lend, 0, 0, 0 },
    { "GET", "/block", NULL, on_block, 0, 0, 0 },
    { "GET", "/tree/*", NULL, on_describe, 0, 0, 0 },
};

static void on_refused(void *opaque, struct http_exchange *x, int status)
{
    assert_true(http_path(x).len > 0);
    ((struct fixture *)opaque)->refused_by_server = status;
}

static int setup_limited(void **state, const char *listen, int threads, int idle_timeout_s,
                         int max_connections)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct why why = { "" };
    struct http_server_options o = {
        .listen = listen,
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = f,
        .refused = on_refused,
        .threads = threads,
        .idle_timeout_s = idle_timeout_s,
        .max_connections = max_connections,
        .max_inflight_bytes = IN_FLIGHT,
    };
    pthread_mutex_init(&f->lock, NULL);
    if (http_server_new(&f->server, &o, &why)) {
        print_error("%s\n", why.text);
        return -1;
    }
    f->port = http_server_port(f->server);
    f->client = client_new();
    *state = f;
    return f->client ? 0 : -1;
}

static inline int setup_with(void **state, const char *listen, int threads, int idle_timeout_s)
{
    return setup_limited(state, listen, threads, idle_timeout_s, 0);
}

static inline int setup(void **state)
{
    return setup_with(state, "127.0.0.1:0", 2, 0);
}

static inline int setup_impatient(void **state)
{
    return setup_with(state, "127.0.0.1:0", 2, 1);
}

static inline int setup_one_thread(void **state)
{
    return setup_with(state, "127.0.0.1:0", 1, 0);
}

static inline int setup_crowd(void **state)
{
    return setup_limited(state, "127.0.0.1:0", 1, 0, CROWD_MAX);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    http_client_free(f->client);
    http_server_free(f->server, 5000);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static inline size_t held(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_held;
    pthread_mutex_unlock(&f->lock);
    return n;
}

static inline struct http_exchange *take_held(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    struct http_exchange *x = f->n_held ? f->held[--f->n_held] : NULL;
    pthread_mutex_unlock(&f->lock);
    return x;
}

static inline void wait_held(struct fixture *f, size_t n)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (held(f) < n && clock_mono_ms() < until_ms)
        http_client_poll(f->client, NULL, 5);
    assert_int_equal(held(f), n);
}

static inline void wait_in_flight(struct fixture *f, size_t n)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (http_server_in_flight(f->server) != n && clock_mono_ms() < until_ms)
        http_client_poll(f->client, NULL, 5);
    assert_int_equal(http_server_in_flight(f->server), n);
}

static inline void wait_idle(struct fixture *f)
{
    wait_in_flight(f, 0);
}

static inline struct str filled(char *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (char)('a' + i % 26);
    return (struct str){ to, len };
}

static inline void start(struct fixture *f, const char *method, const char *path, struct str body,
                         struct got *got)
{
    char url[256];
    struct why why = { "" };
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", f->port, path);
    struct http_request r = { .method = method, .url = url, .body = body };
    assert_int_equal(http_client_start(f->client, &r, got_answer, got, &why), OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
