/* A request that is given up must not arrive later, behind newer ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tcp_fixture.h"
#include "tests/unit/support/http_fixture.h"

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

/* A process that was paused goes on in the middle: between the decision and the sending, too. */
static void what_may_not_be_sent_any_more_is_not_sent(void **state)
{
    char url[64], part[64];
    int port, fd = tcp_listen_slow(&port);
    struct http_client *client = client_new();
    struct got late = { 0 }, in_time = { 0 };
    struct why why;
    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    struct http_request r = {
        .method = "POST", .url = url, .timeout_ms = 1000, .send_by_ms = clock_boot_ms() - 1
    };
    assert_int_equal(http_client_start(client, &r, got_answer, &late, &why), OK);
    assert_true(client_finish(client));
    assert_int_equal(late.err, ERR_RETRY);
    assert_non_null(strstr(late.reason, "too late"));
    int taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(recv(taken, part, sizeof(part), 0), 0); /* a connection, and nothing on it */
    close(taken);
    r.send_by_ms = clock_boot_ms() + TEST_LIMIT_MS;
    assert_int_equal(http_client_start(client, &r, got_answer, &in_time, &why), OK);
    http_client_poll(client, NULL, 100);
    taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    http_client_poll(client, NULL, 100);
    assert_true(recv(taken, part, sizeof(part), 0) > 0);
    close(taken);
    assert_true(client_finish(client));
    assert_int_equal(in_time.err, ERR_UNKNOWN);
    close(fd);
    http_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_acknowledged_goes_before_a_request_is_given_up),
        cmocka_unit_test(what_may_not_be_sent_any_more_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
