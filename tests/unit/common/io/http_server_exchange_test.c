#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http_server_fixture.h"

/* ---- answers from elsewhere, late, or never ----------------------------------------- */

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

static void a_request_says_whose_it_is_of_ipv6_by_the_first_half(void **state)
{
    (void)state;
    static const char *const from[][2] = { { "127.0.0.1:0", "127.0.0.1" }, { "[::1]:0", "::" } };
    for (size_t i = 0; i < 2; i++) {
        void *own = NULL;
        struct got g = { 0 };
        char url[64], address[HTTP_ADDRESS_SIZE];
        struct why why;
        int missing = setup_with(&own, from[i][0], 1, 0);
        if (i > 0 && missing)
            skip(); /* no IPv6 here */
        assert_int_equal(missing, 0);
        struct fixture *f = own;
        snprintf(url, sizeof(url), "http://%s:%d/hold", i ? "[::1]" : "127.0.0.1", f->port);
        struct http_request r = { .method = "POST", .url = url, .body = STR_LIT("x") };
        assert_int_equal(http_client_start(f->client, &r, got_answer, &g, &why), OK);
        wait_held(f, 1);
        struct http_exchange *x = take_held(f);
        assert_true(str_is(http_address(x, address), from[i][1]));
        http_reply(x, 200, NULL, NULL, STR_LIT("{}"));
        assert_true(client_finish(f->client));
        teardown(&own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answer_may_come_from_another_thread),
        TEST(deadline_answers_503_and_a_late_reply_is_harmless),
        TEST(abort_hangs_up_without_an_answer),
        TEST(reply_in_time_wins_over_the_deadline),
        TEST(deadline_and_reply_race_and_exactly_one_answer_comes),
        TEST(many_requests_in_flight_are_answered_from_many_threads),
        TEST(reply_after_the_server_has_gone_is_harmless),
        TEST(client_that_vanishes_while_waited_for_is_forgotten),
        TEST(client_that_vanishes_in_mid_body_is_forgotten),
        cmocka_unit_test(a_request_says_whose_it_is_of_ipv6_by_the_first_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
