/* A request that is given up must not arrive later, behind newer ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/standstill.h"
#include "http_fixture.h"
#include "tcp_fixture.h"

static void what_is_not_acknowledged_goes_before_a_request_is_given_up(void **state)
{
    char url[64];
    int port, fd = tcp_listen_slow(&port), user_timeout_ms = -1;
    int64_t until_ms = clock_mono_ms() + TEST_LIMIT_MS;
    struct http_client *client = client_new();
    struct got g = { 0 };
    struct why why;
    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    const struct http_request r = { .method = "GET", .url = url };
    assert_int_equal(http_client_start(client, &r, got_answer, &g, &why), OK);
    while (user_timeout_ms < 0 && clock_mono_ms() < until_ms) {
        http_client_poll(client, NULL, 100);
        user_timeout_ms = tcp_user_timeout_to(port);
    }
    assert_int_equal(user_timeout_ms, 15000);
    http_client_free(client);
    close(fd);
}

static struct http_client *fresh_client(void)
{
    const struct http_client_options options = { .user_agent = "test", .only_fresh = true };
    struct http_client *client;
    struct why why;
    assert_int_equal(http_client_new(&client, &options, &why), OK);
    http_client_poll(client, NULL, 0);
    return client;
}

/* The server has a connection, and nothing came on it. */
static void assert_not_sent(struct http_client *client, const struct got *g, int fd)
{
    char part[64];
    assert_true(client_finish(client));
    assert_int_equal(g->err, ERR_RETRY);
    assert_non_null(strstr(g->reason, "stood still"));
    int taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(recv(taken, part, sizeof(part), 0), 0);
    close(taken);
}

/* A process that was stopped goes on in the middle: between the start of a request and its sending,
 * too. */
static void what_was_started_before_a_standstill_is_not_sent(void **state)
{
    char url[64], part[64];
    int port, fd = tcp_listen_slow(&port);
    struct http_client *client = fresh_client();
    struct got old = { 0 }, fresh = { 0 };
    struct why why;
    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    const struct http_request r = { .method = "POST", .url = url, .timeout_ms = 8000 };
    assert_int_equal(http_client_start(client, &r, got_answer, &old, &why), OK);
    poll(NULL, 0, STANDSTILL_MS + 200);
    assert_not_sent(client, &old, fd);
    assert_int_equal(http_client_start(client, &r, got_answer, &fresh, &why), OK);
    http_client_poll(client, NULL, 100);
    int taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    http_client_poll(client, NULL, 100);
    assert_true(recv(taken, part, sizeof(part), 0) > 0);
    close(taken);
    assert_true(client_finish(client));
    assert_int_equal(fresh.err, ERR_UNKNOWN);
    close(fd);
    http_client_free(client);
}

/* Between the decision and the start, too. */
static void what_was_decided_before_a_standstill_is_not_sent(void **state)
{
    char url[64];
    int port, fd = tcp_listen_slow(&port);
    struct http_client *client = fresh_client();
    struct got old = { 0 };
    struct why why;
    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    const struct http_request r = {
        .method = "POST", .url = url, .timeout_ms = 1000, .known_ms = clock_mono_ms()
    };
    poll(NULL, 0, STANDSTILL_MS + 200);
    assert_int_equal(http_client_start(client, &r, got_answer, &old, &why), OK);
    assert_not_sent(client, &old, fd);
    close(fd);
    http_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_acknowledged_goes_before_a_request_is_given_up),
        cmocka_unit_test(what_was_started_before_a_standstill_is_not_sent),
        cmocka_unit_test(what_was_decided_before_a_standstill_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
