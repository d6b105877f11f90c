#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "common/io/http_server.h"
#include "http_fixture.h"

/* ---- a server whose handlers the tests steer ----------------------------------------------------
 */

enum { HELD_MAX = 2000, SMALL_BODY = 1000, IN_FLIGHT = 4 << 20, DEADLINE_MS = 150 };

struct fixture {
    struct http_server *server;
    struct http_client *client;
    int port;
    pthread_mutex_t lock;
    struct http_exchange *held[HELD_MAX]; /* what `hold` took and nobody has answered yet */
    size_t n_held;
    atomic_int handled, begun;
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
             http_header(x, "x-absent").ptr == NULL);
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

static void begin_refuse(void *opaque, struct http_exchange *x)
{
    struct fixture *f = opaque;
    f->begun++;
    if (!http_header(x, "x-test").ptr)
        http_reply_error(x, 401, "who are \"you\"?");
}

static const struct http_route routes[] = {
    { "POST", "/echo", NULL, on_echo, SMALL_BODY, 0 },
    { "POST", "/big", NULL, on_echo, 64 << 20, 0 },
    { "GET", "/describe", NULL, on_describe, 0, 0 },
    { "PUT", "/describe", NULL, on_describe, 0, 0 },
    { "POST", "/hold", NULL, on_hold, 64 << 20, 0 },
    { "GET", "/deadline", NULL, on_hold, 0, DEADLINE_MS },
    { "POST", "/thread", NULL, on_other_thread, SMALL_BODY, 8000 },
    { "POST", "/race", NULL, on_race, SMALL_BODY, RACE_MS },
    { "POST", "/take", NULL, on_take, SMALL_BODY, 0 },
    { "POST", "/guarded", begin_refuse, on_echo, 64 << 20, 0 },
    { "GET", "/block", NULL, on_block, 0, 0 },
    { "GET", "/tree/*", NULL, on_describe, 0, 0 },
};

static int setup_with(void **state, const char *listen, int threads, int idle_timeout_s)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct why why = { "" };
    struct http_server_options o = {
        .listen = listen,
        .routes = routes,
        .n_routes = sizeof(routes) / sizeof(routes[0]),
        .opaque = f,
        .threads = threads,
        .idle_timeout_s = idle_timeout_s,
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

static int setup(void **state)
{
    return setup_with(state, "127.0.0.1:0", 2, 0);
}

static int setup_impatient(void **state)
{
    return setup_with(state, "127.0.0.1:0", 2, 1);
}

static int setup_one_thread(void **state)
{
    return setup_with(state, "127.0.0.1:0", 1, 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http_client_free(f->client);
    http_server_free(f->server, 5000);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static size_t held(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_held;
    pthread_mutex_unlock(&f->lock);
    return n;
}

static struct http_exchange *take_held(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    struct http_exchange *x = f->n_held ? f->held[--f->n_held] : NULL;
    pthread_mutex_unlock(&f->lock);
    return x;
}

static void wait_held(struct fixture *f, size_t n)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (held(f) < n && clock_mono_ms() < until_ms)
        http_client_poll(f->client, NULL, 5);
    assert_int_equal(held(f), n);
}

static void wait_idle(struct fixture *f)
{
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    while (http_server_in_flight(f->server) && clock_mono_ms() < until_ms)
        http_client_poll(f->client, NULL, 5);
    assert_int_equal(http_server_in_flight(f->server), 0);
}

static struct str filled(char *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (char)('a' + i % 26);
    return (struct str){ to, len };
}

static void start(struct fixture *f, const char *method, const char *path, struct str body,
                  struct got *got)
{
    char url[256];
    struct why why = { "" };
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", f->port, path);
    struct http_request r = { .method = method, .url = url, .body = body };
    assert_int_equal(http_client_start(f->client, &r, got_answer, got, &why), OK);
}

/* ---- routes
 * ----------------------------------------------------------------------------------------- */

static void unknown_path_is_404_with_detail(void **state)
{
    struct fixture *f = *state;
    struct got g = fetch(f->client, f->port, "GET", "/nowhere", STR_NONE);
    assert_int_equal(g.status, 404);
    assert_string_equal(g.body, "{\"detail\": \"no such path\"}");
}

static void wrong_method_is_405_and_says_what_is_allowed(void **state)
{
    struct fixture *f = *state;
    struct got g = fetch(f->client, f->port, "DELETE", "/describe", STR_NONE);
    assert_int_equal(g.status, 405);
    assert_string_equal(g.allow, "GET, HEAD, PUT");
}

static void trailing_slash_query_and_escapes_are_understood(void **state)
{
    struct fixture *f = *state;
    struct got g = fetch(f->client, f->port, "GET", "/describe/?q=a%20b%26c&r", STR_NONE);
    assert_string_equal(g.body, "GET /describe q=a b&c h= none=1");
    g = fetch(f->client, f->port, "GET", "/tree/a%2Fb/c", STR_NONE);
    assert_string_equal(g.body, "GET /tree/a/b/c q= h= none=1");
    g = fetch(f->client, f->port, "GET", "/tree", STR_NONE);
    assert_int_equal(g.status, 404);
}

static void head_is_get_without_the_body(void **state)
{
    struct fixture *f = *state;
    struct got g = fetch(f->client, f->port, "HEAD", "/describe", STR_NONE);
    assert_int_equal(g.status, 200);
    assert_int_equal(g.body_len, 0);
}

/* ---- bodies
 * ------------------------------------------------------------------------------------------- */

static void body_comes_through_unchanged(void **state)
{
    struct fixture *f = *state;
    char body[SMALL_BODY];
    struct str sent = filled(body, sizeof(body));
    for (size_t len = 0; len <= SMALL_BODY; len += 250) {
        struct got g = fetch(f->client, f->port, "POST", "/echo", (struct str){ sent.ptr, len });
        assert_int_equal(g.status, 200);
        assert_int_equal(g.body_len, len);
        assert_memory_equal(g.body, body, len);
    }
    struct got g = fetch(f->client, f->port, "POST", "/take", sent);
    assert_int_equal(g.body_len, SMALL_BODY);
}

static void declared_length_over_the_limit_is_413_and_unread(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"));
    assert_true(raw_expect(fd, "413"));
    assert_true(raw_closed(fd));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static void chunked_body_over_the_limit_is_413(void **state)
{
    struct fixture *f = *state;
    char chunk[SMALL_BODY + 1];
    memset(chunk, 'x', sizeof(chunk) - 1);
    chunk[SMALL_BODY] = '\0';
    int fd = raw_connect(f->port);
    assert_true(raw_send(
        fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n"));
    assert_true(raw_send(fd, chunk) && raw_send(fd, "\r\n1\r\ny\r\n0\r\n\r\n"));
    assert_true(raw_expect(fd, "413"));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static void chunked_body_within_the_limit_is_whole(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"));
    assert_true(raw_expect(fd, "\r\n\r\nabcdefg"));
    close(fd);
}

static void what_begin_refuses_is_not_read_and_not_encouraged(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n"
                             "Expect: 100-continue\r\n\r\n"));
    char seen[2048] = "";
    assert_true(recv(fd, seen, sizeof(seen) - 1, 0) > 0);
    assert_memory_equal(seen, "HTTP/1.1 401", 12);
    assert_non_null(strstr(seen, "{\"detail\": \"who are \\\"you\\\"?\"}"));
    assert_true(raw_closed(fd));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static void client_that_sends_all_before_it_reads_still_sees_the_refusal(void **state)
{
    struct fixture *f = *state;
    size_t len = 8 << 20;
    char *body = malloc(len);
    assert_non_null(body);
    memset(body, 'x', len);
    for (int i = 0; i < 10; i++) {
        int fd = raw_connect(f->port);
        assert_true(
            raw_send(fd, "POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n"));
        assert_int_equal(send(fd, body, len, MSG_NOSIGNAL), len);
        assert_true(raw_expect(fd, "401"));
        close(fd);
    }
    free(body);
}

static void what_begin_lets_pass_is_handled(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /guarded HTTP/1.1\r\nHost: x\r\nX-Test: 1\r\n"
                             "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
    assert_true(raw_expect(fd, "HTTP/1.1 100 Continue\r\n\r\n"));
    assert_true(raw_send(fd, "hi"));
    assert_true(raw_expect(fd, "\r\n\r\nhi"));
    assert_int_equal(f->begun, 1);
    close(fd);
}

static void bodies_over_the_in_flight_limit_are_503_until_room_is_made(void **state)
{
    struct fixture *f = *state;
    size_t len = IN_FLIGHT - 1000;
    char *body = malloc(len);
    assert_non_null(body);
    struct got first = { 0 };
    start(f, "POST", "/hold", filled(body, len), &first);
    wait_held(f, 1);
    struct got g = fetch(f->client, f->port, "POST", "/echo", (struct str){ body, 1000 });
    assert_int_equal(g.status, 200); /* exactly fits */
    assert_int_equal(first.calls, 0);

    struct got second = { 0 };
    start(f, "POST", "/big", (struct str){ body, 1001 }, &second);
    while (!second.calls)
        http_client_poll(f->client, NULL, 100);
    assert_int_equal(second.status, 503);
    assert_string_equal(second.retry_after, "2");

    http_reply(take_held(f), 200, NULL, NULL, STR_LIT("x"));
    assert_true(client_finish(f->client));
    assert_int_equal(first.status, 200);
    assert_int_equal(fetch(f->client, f->port, "POST", "/big", (struct str){ body, 1001 }).status,
                     200);
    free(body);
}

/* ---- answers from elsewhere, late, or never
 * ---------------------------------------------------------------- */

static void answer_may_come_from_another_thread(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 200; i++) {
        struct got g = fetch(f->client, f->port, "POST", "/thread", STR_LIT("x"));
        assert_int_equal(g.status, 202);
        assert_string_equal(g.body, "{\"ok\":true}");
    }
}

static void deadline_answers_503_and_a_late_reply_is_harmless(void **state)
{
    struct fixture *f = *state;
    int64_t began_ms = clock_mono_ms();
    struct got g = fetch(f->client, f->port, "GET", "/deadline", STR_NONE);
    assert_int_equal(g.status, 503);
    assert_string_equal(g.retry_after, "2");
    assert_in_range(clock_mono_ms() - began_ms, DEADLINE_MS, TEST_LIMIT_MS / 2);
    wait_idle(f);
    struct http_exchange *x = take_held(f);
    assert_string_equal("/deadline", http_path(x).ptr ? "/deadline" : "");
    assert_true(str_is(http_method(x), "GET")); /* still readable, microhttpd has forgotten it */
    assert_false(http_reply(x, 200, NULL, NULL, STR_LIT("late")));
}

static void abort_hangs_up_without_an_answer(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    start(f, "POST", "/hold", STR_LIT("x"), &g);
    wait_held(f, 1);
    http_abort(take_held(f));
    assert_true(client_finish(f->client));
    assert_int_equal(g.err, ERR_UNKNOWN);
    wait_idle(f);
}

static void reply_in_time_wins_over_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    start(f, "GET", "/deadline", STR_NONE, &g);
    wait_held(f, 1);
    assert_true(http_reply(take_held(f), 200, NULL, NULL, STR_LIT("in time")));
    assert_true(client_finish(f->client));
    assert_int_equal(g.status, 200);
    assert_string_equal(g.body, "in time");
}

static void deadline_and_reply_race_and_exactly_one_answer_comes(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 15, AT_ONCE = 12 };
    for (int round = 0; round < ROUNDS; round++) {
        struct got got[AT_ONCE] = { 0 };
        for (int i = 0; i < AT_ONCE; i++)
            start(f, "POST", "/race", STR_LIT("body"), &got[i]);
        assert_true(client_finish(f->client));
        for (int i = 0; i < AT_ONCE; i++) {
            assert_int_equal(got[i].calls, 1);
            assert_true(got[i].status == 200 || got[i].status == 503);
        }
    }
    wait_idle(f);
}

static void many_requests_in_flight_are_answered_from_many_threads(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 20, AT_ONCE = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        struct got got[AT_ONCE] = { 0 };
        for (int i = 0; i < AT_ONCE; i++)
            start(f, "POST", i % 2 ? "/thread" : "/echo", STR_LIT("x"), &got[i]);
        assert_true(client_finish(f->client));
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(got[i].status, i % 2 ? 202 : 200);
    }
}

static void reply_after_the_server_has_gone_is_harmless(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    start(f, "POST", "/hold", STR_LIT("body"), &g);
    wait_held(f, 1);
    http_server_free(f->server, 0);
    f->server = NULL;
    assert_true(client_finish(f->client));
    assert_int_equal(g.status, 503);
    struct http_exchange *x = take_held(f);
    assert_true(str_is(http_body(x), "body"));
    assert_false(http_reply(x, 200, NULL, NULL, STR_LIT("late")));
}

static void client_that_vanishes_while_waited_for_is_forgotten(void **state)
{
    struct fixture *f = *state;
    enum { N = 50 };
    for (int i = 0; i < N; i++) {
        int fd = raw_connect(f->port);
        struct linger reset = { 1, 0 };
        assert_true(raw_send(fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
        wait_held(f, (size_t)i + 1);
        if (i % 2)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
    for (struct http_exchange *x; (x = take_held(f));)
        assert_true(http_reply(x, 200, NULL, NULL, STR_LIT("nobody there")));
    wait_idle(f);
}

static void client_that_vanishes_in_mid_body_is_forgotten(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(
        raw_send(fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\nabc"));
    while (!http_server_in_flight(f->server))
        http_client_poll(f->client, NULL, 5);
    close(fd);
    wait_idle(f);
    assert_int_equal(held(f), 0);
    char body[2];
    assert_int_equal(fetch(f->client, f->port, "POST", "/echo", filled(body, 2)).status, 200);
}

/* ---- connections
 * ------------------------------------------------------------------------------------------- */

static void connection_is_kept_for_the_next_request(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    for (int i = 0; i < 3; i++) {
        assert_true(
            raw_send(fd, "POST /thread HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
        assert_true(raw_expect(fd, "{\"ok\":true}"));
        assert_true(raw_send(fd, "GET /describe HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_true(raw_expect(fd, "GET /describe"));
    }
    close(fd);
}

static void thousand_requests_wait_at_once_and_all_are_answered(void **state)
{
    struct fixture *f = *state;
    enum { N = 1000 };
    static const char request[] = "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
    int *fds = calloc(N, sizeof(int));
    for (int i = 0; i < N; i++) {
        fds[i] = raw_connect(f->port);
        assert_true(fds[i] >= 0 && raw_send(fds[i], request));
    }
    wait_held(f, N);
    assert_int_equal(http_server_in_flight(f->server), N);
    for (struct http_exchange *x; (x = take_held(f));)
        assert_true(http_reply(x, 200, NULL, NULL, http_body(x)));
    for (int i = 0; i < N; i++) {
        assert_true(raw_expect(fds[i], "\r\n\r\nbody"));
        close(fds[i]);
    }
    wait_idle(f);
    free(fds);
}

/* As many as microhttpd takes from epoll at once; it used to wait for one more. */
static void exactly_128_ready_connections_do_not_stop_the_server(void **state)
{
    struct fixture *f = *state;
    enum { N = 128 };
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n";
    int fds[N], blocker = raw_connect(f->port);
    for (int i = 0; i < N; i++) {
        fds[i] = raw_connect(f->port);
        assert_true(raw_send(fds[i], request) && raw_send(fds[i], "hi"));
        assert_true(raw_expect(fds[i], "\r\n\r\nhi")); /* it is known to the server now */
    }
    assert_true(raw_send(blocker, "GET /block HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (!f->blocking)
        sched_yield();
    for (int i = 0; i < N; i++)
        assert_true(raw_send(fds[i], request) && raw_send(fds[i], "ho"));
    f->blocking = false;
    for (int i = 0; i < N; i++) {
        assert_true(raw_expect(fds[i], "\r\n\r\nho"));
        close(fds[i]);
    }
    close(blocker);
}

static void silent_client_is_cut_off(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Le"));
    assert_true(raw_closed(fd));
    close(fd);
    wait_idle(f);
}

/* ---- the end
 * ------------------------------------------------------------------------------------------------
 */

static void quiesced_server_takes_nobody_new_and_ends_what_it_has(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    start(f, "POST", "/hold", STR_LIT("x"), &g);
    wait_held(f, 1);
    http_server_quiesce(f->server);
    assert_int_equal(raw_connect(f->port), -1);
    http_reply(take_held(f), 200, NULL, NULL, STR_LIT("ended"));
    assert_true(client_finish(f->client));
    assert_string_equal(g.body, "ended");
}

static void *free_server(void *server)
{
    http_server_free(server, TEST_LIMIT_MS);
    return NULL;
}

static void free_waits_for_what_is_under_way(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    pthread_t thread;
    start(f, "POST", "/hold", STR_LIT("x"), &g);
    wait_held(f, 1);
    assert_int_equal(pthread_create(&thread, NULL, free_server, f->server), 0);
    f->server = NULL;
    for (int fd; (fd = raw_connect(f->port)) >= 0;) /* until it has begun to end */
        close(fd);
    assert_true(http_reply(take_held(f), 200, NULL, NULL, STR_LIT("ended")));
    assert_true(client_finish(f->client));
    assert_int_equal(g.status, 200);
    pthread_join(thread, NULL);
}

/* ---- addresses
 * ------------------------------------------------------------------------------------------------
 */

static void listens_on_ipv6(void **state)
{
    (void)state;
    void *own = NULL;
    assert_int_equal(setup_with(&own, "[::1]:0", 2, 0), 0);
    struct fixture *f = own;
    struct got g = { 0 };
    char url[64];
    struct why why;
    snprintf(url, sizeof(url), "http://[::1]:%d/describe", f->port);
    struct http_request r = { .method = "GET", .url = url };
    assert_int_equal(http_client_start(f->client, &r, got_answer, &g, &why), OK);
    assert_true(client_finish(f->client));
    assert_int_equal(g.status, 200);
    teardown(&own);
}

static void bad_address_is_refused_and_a_taken_port_named(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "", "8080", ":8080", "127.0.0.1:", "127.0.0.1:http", "::1:80", "127.0.0.1:65536"
    };
    struct http_server *s = NULL;
    struct why why;
    struct http_server_options o = { .routes = routes, .n_routes = 1 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o.listen = bad[i];
        assert_int_equal(http_server_new(&s, &o, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, "listen: address"));
    }
    char taken[32];
    snprintf(taken, sizeof(taken), "127.0.0.1:%d", f->port);
    o.listen = taken;
    assert_int_equal(http_server_new(&s, &o, &why), ERR_STOP);
    assert_non_null(strstr(why.text, taken));
    assert_null(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_path_is_404_with_detail),
        TEST(wrong_method_is_405_and_says_what_is_allowed),
        TEST(trailing_slash_query_and_escapes_are_understood),
        TEST(head_is_get_without_the_body),
        TEST(body_comes_through_unchanged),
        TEST(declared_length_over_the_limit_is_413_and_unread),
        TEST(chunked_body_over_the_limit_is_413),
        TEST(chunked_body_within_the_limit_is_whole),
        TEST(what_begin_refuses_is_not_read_and_not_encouraged),
        TEST(client_that_sends_all_before_it_reads_still_sees_the_refusal),
        TEST(what_begin_lets_pass_is_handled),
        TEST(bodies_over_the_in_flight_limit_are_503_until_room_is_made),
        TEST(answer_may_come_from_another_thread),
        TEST(deadline_answers_503_and_a_late_reply_is_harmless),
        TEST(abort_hangs_up_without_an_answer),
        TEST(reply_in_time_wins_over_the_deadline),
        TEST(deadline_and_reply_race_and_exactly_one_answer_comes),
        TEST(many_requests_in_flight_are_answered_from_many_threads),
        TEST(reply_after_the_server_has_gone_is_harmless),
        TEST(client_that_vanishes_while_waited_for_is_forgotten),
        TEST(client_that_vanishes_in_mid_body_is_forgotten),
        TEST(connection_is_kept_for_the_next_request),
        TEST(thousand_requests_wait_at_once_and_all_are_answered),
        cmocka_unit_test_setup_teardown(exactly_128_ready_connections_do_not_stop_the_server,
                                        setup_one_thread, teardown),
        cmocka_unit_test_setup_teardown(silent_client_is_cut_off, setup_impatient, teardown),
        TEST(quiesced_server_takes_nobody_new_and_ends_what_it_has),
        TEST(free_waits_for_what_is_under_way),
        cmocka_unit_test(listens_on_ipv6),
        TEST(bad_address_is_refused_and_a_taken_port_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
