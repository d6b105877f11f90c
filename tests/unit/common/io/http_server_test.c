#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/resource.h>

#include "http_server_fixture.h"

/* ---- connections -------------------------------------------------------------------- */

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

static void client_that_drips_its_request_is_cut_off(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    int64_t began_ms = clock_mono_ms();
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_true(raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nX-Drip: "));
    while (poll(&p, 1, 100) == 0 && clock_mono_ms() - began_ms < TEST_LIMIT_MS)
        raw_send(fd, "x"); /* ten times in the idle time-out */
    assert_true(clock_mono_ms() - began_ms < TEST_LIMIT_MS);
    assert_true(raw_closed(fd));
    close(fd);
}

/* More than are taken at once; the first ones go. */
static void who_speaks_is_served_however_many_are_silent(void **state)
{
    struct fixture *f = *state;
    enum { N = CROWD_MAX * 3 };
    int fds[N];
    for (size_t i = 0; i < N; i++)
        assert_true((fds[i] = raw_connect(f->port)) >= 0);
    int one = raw_connect(f->port);
    int64_t began_ms = clock_mono_ms();
    assert_true(raw_send(one, "GET /describe HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_true(raw_expect(one, "GET /describe"));
    assert_true(raw_closed(fds[0]));
    assert_true(clock_mono_ms() - began_ms < 8000); /* after 10 s the silent ones end anyway */
    assert_true(raw_send(fds[N - 1], "GET /describe HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_true(raw_expect(fds[N - 1], "GET /describe"));
    for (size_t i = 0; i < N; i++)
        close(fds[i]);
    close(one);
}

/* On a connection of its own: nobody is newer, so nobody can displace it. */
static void echo_once(int port)
{
    int fd = raw_connect(port);
    assert_true(raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"));
    assert_true(raw_expect(fd, "\r\n\r\nbody"));
    close(fd);
}

/* A whole head is not enough, nor is half a body: who is quick passes them all. */
static void who_is_quick_is_served_however_many_keep_their_bodies(void **state)
{
    struct fixture *f = *state;
    static const char *const begun[] = {
        "POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        "POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        "POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "GET /lend HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    enum { N = CROWD_MAX * 3 };
    for (size_t shape = 0; shape < 4; shape++) {
        int fds[N];
        for (size_t i = 0; i < N; i++) {
            assert_true((fds[i] = raw_connect(f->port)) >= 0 && raw_send(fds[i], begun[shape]));
            if (i % 8 == 0)
                echo_once(f->port);
        }
        if (shape < 3)
            assert_true(raw_expect(fds[0], "503 Service Unavailable"));
        assert_true(raw_closed(fds[0]));
        if (shape == 1)
            assert_true(raw_send(fds[N - 1], "whole") && raw_expect(fds[N - 1], "halfwhole"));
        for (size_t i = 0; i < N; i++)
            close(fds[i]);
    }
}

/* ---- what is lent ------------------------------------------------------------------- */

static void what_is_lent_comes_whole_and_is_released_once(void **state)
{
    struct fixture *f = *state;
    struct got g = fetch(f->client, f->port, "GET", "/lend", STR_NONE);
    assert_int_equal(g.status, 200);
    assert_int_equal(g.body_len, LENT_BYTES);
    g = fetch(f->client, f->port, "HEAD", "/lend", STR_NONE);
    assert_int_equal(g.status, 200);
    wait_idle(f);
    assert_int_equal(f->released, 2);
}

static void where_it_is_crowded_the_slowest_reader_ends(void **state)
{
    struct fixture *f = *state;
    static const char request[] = "GET /lend HTTP/1.1\r\nHost: x\r\n\r\n";
    int fds[2];
    for (size_t i = 0; i < 2; i++) {
        assert_true((fds[i] = raw_connect(f->port)) >= 0 && raw_send(fds[i], request));
        wait_in_flight(f, i + 1);
    }
    assert_int_equal(f->released, 0);
    struct got g = fetch(f->client, f->port, "GET", "/lend?crowded", STR_NONE);
    assert_int_equal(g.body_len, LENT_BYTES);
    wait_in_flight(f, 1);
    assert_int_equal(f->released, 2);
    close(fds[1]);
    wait_idle(f);
    assert_int_equal(f->released, 3);
    close(fds[0]);
}

/* ---- the end ------------------------------------------------------------------------ */

static void server_that_is_leaving_takes_requests_and_closes_after_each(void **state)
{
    struct fixture *f = *state;
    static const char request[] = "GET /describe HTTP/1.1\r\nHost: x\r\n\r\n";
    int kept = raw_connect(f->port);
    assert_true(raw_send(kept, request) && raw_expect(kept, "GET /describe"));
    http_server_last_requests(f->server);
    int fresh = raw_connect(f->port);
    int both[] = { kept, fresh };
    for (size_t i = 0; i < 2; i++) {
        assert_true(raw_send(both[i], request) && raw_expect(both[i], "Connection: close"));
        assert_true(raw_closed(both[i]));
        close(both[i]);
    }
}

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

/* ---- addresses ---------------------------------------------------------------------- */

static bool has_ipv6(void)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

static void listens_on_ipv6(void **state)
{
    (void)state;
    void *own = NULL;
    if (!has_ipv6())
        skip();
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

static void clients_cannot_take_the_last_descriptors(void **state)
{
    struct rlimit before;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 400, before.rlim_max }), 0);
    assert_int_equal(http_server_max_connections(0), 300);
    assert_int_equal(http_server_max_connections(64), 64);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* microhttpd accepts nobody after EMFILE until one of its connections is closed. */
static void who_found_no_descriptor_left_is_served_when_there_are_some_again(void **state)
{
    static const char request[] = "GET /describe HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *f = *state;
    struct rlimit before, none = { 0 };
    int kept = raw_connect(f->port);
    assert_true(raw_send(kept, request) && raw_expect(kept, "GET /describe"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int turned_away = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), next = dup(turned_away);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)f->port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    none.rlim_cur = (rlim_t)next;
    none.rlim_max = before.rlim_max;
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(turned_away, (struct sockaddr *)&to, sizeof(to)), 0);
    sleep(2); /* accept has failed by then */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(raw_send(kept, request) && raw_expect(kept, "Connection: close"));
    assert_true(raw_send(turned_away, request) && raw_expect(turned_away, "GET /describe"));
    close(kept);
    close(turned_away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connection_is_kept_for_the_next_request),
        TEST(thousand_requests_wait_at_once_and_all_are_answered),
        cmocka_unit_test_setup_teardown(exactly_128_ready_connections_do_not_stop_the_server,
                                        setup_one_thread, teardown),
        cmocka_unit_test_setup_teardown(who_speaks_is_served_however_many_are_silent, setup_crowd,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_is_quick_is_served_however_many_keep_their_bodies,
                                        setup_crowd, teardown),
        cmocka_unit_test_setup_teardown(what_is_lent_comes_whole_and_is_released_once,
                                        setup_one_thread, teardown),
        cmocka_unit_test_setup_teardown(where_it_is_crowded_the_slowest_reader_ends,
                                        setup_one_thread, teardown),
        cmocka_unit_test_setup_teardown(client_that_drips_its_request_is_cut_off, setup_impatient,
                                        teardown),
        cmocka_unit_test_setup_teardown(silent_client_is_cut_off, setup_impatient, teardown),
        cmocka_unit_test_setup_teardown(
            who_found_no_descriptor_left_is_served_when_there_are_some_again, setup_one_thread,
            teardown),
        TEST(server_that_is_leaving_takes_requests_and_closes_after_each),
        TEST(quiesced_server_takes_nobody_new_and_ends_what_it_has),
        TEST(free_waits_for_what_is_under_way),
        cmocka_unit_test(listens_on_ipv6),
        cmocka_unit_test(clients_cannot_take_the_last_descriptors),
        TEST(bad_address_is_refused_and_a_taken_port_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
