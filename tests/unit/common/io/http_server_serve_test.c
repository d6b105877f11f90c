#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http_server_fixture.h"

/* ---- routes ------------------------------------------------------------------------- */

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

/* ---- bodies ------------------------------------------------------------------------- */

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

/* As much as the kernels hold of it; who sends more may see a reset. */
static void client_that_sends_a_small_body_before_it_reads_still_sees_the_refusal(void **state)
{
    struct fixture *f = *state;
    static char body[64 * 1024];
    (void)filled(body, sizeof(body));
    for (int i = 0; i < 100; i++) {
        int fd = raw_connect(f->port);
        assert_true(
            raw_send(fd, "POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n"));
        (void)!send(fd, body, sizeof(body), MSG_NOSIGNAL);
        assert_true(raw_expect(fd, "401"));
        close(fd);
    }
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

/* What one body after another gets while a large one is held. */
static void bodies_over_the_in_flight_limit_are_503_until_room_is_made(void **state)
{
    struct fixture *f = *state;
    const size_t large = IN_FLIGHT / 4 * 3, small = IN_FLIGHT / 4;
    char *body = malloc(large);
    assert_non_null(body);
    struct got first = { 0 };
    start(f, "POST", "/hold", filled(body, large), &first);
    wait_held(f, 1);
    struct got g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, small });
    assert_int_equal(g.status, 200); /* exactly fits */
    assert_int_equal(first.calls, 0);

    const size_t too_many[] = { small + 1, large };
    for (size_t i = 0; i < 2; i++) {
        g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, too_many[i] });
        assert_int_equal(g.status, 503);
        assert_string_equal(g.retry_after, "2");
    }
    http_reply(take_held(f), 200, NULL, NULL, STR_LIT("x"));
    assert_true(client_finish(f->client));
    assert_int_equal(first.status, 200);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            fetch(f->client, f->port, "POST", "/big", (struct str){ body, too_many[i] }).status,
            200);
    free(body);
}

/* Sends the head of a body of that size, and all of it but its last byte. */
static int body_begin(struct fixture *f, const char *path, size_t size, bool chunked)
{
    char head[160], *body = calloc(1, size);
    int fd = raw_connect(f->port);
    assert_non_null(body);
    snprintf(head, sizeof(head),
             chunked ? "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n"
                     : "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             path, size);
    assert_true(raw_send(fd, head));
    for (size_t at = 0; at < size - 1;) {
        ssize_t n = send(fd, body + at, size - 1 - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
    free(body);
    return fd;
}

/* Whoever came after it is served, of whatever size. */
static void where_there_is_no_room_the_oldest_incomplete_body_ends(void **state)
{
    struct fixture *f = *state;
    enum { N = 8 };
    for (int chunked = 0; chunked < 2; chunked++) {
        int fds[N];
        f->refused_by_server = 0;
        for (size_t i = 0; i < N; i++) {
            fds[i] = body_begin(f, "/big", IN_FLIGHT / N, chunked);
            http_client_poll(f->client, NULL, 50); /* it has been read */
        }
        for (size_t size = 1000; size < IN_FLIGHT / 2; size *= 32) {
            char *body = calloc(1, size);
            struct got g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, size });
            assert_int_equal(g.status, 200);
            free(body);
        }
        assert_true(raw_expect(fds[0], "503 Service Unavailable"));
        assert_true(raw_closed(fds[0]));
        assert_true(raw_send(fds[N - 1], chunked ? "x\r\n0\r\n\r\n" : "x"));
        assert_true(raw_expect(fds[N - 1], "200 OK"));
        for (size_t i = 0; i < N; i++)
            close(fds[i]);
        wait_idle(f);
        assert_int_equal(f->refused_by_server, 503);
    }
}

/* It is in the handler's hands. */
static void a_complete_body_makes_no_room(void **state)
{
    struct fixture *f = *state;
    const size_t half = IN_FLIGHT / 2;
    char *body = calloc(1, half + 1);
    struct got first = { 0 };
    start(f, "POST", "/hold", (struct str){ body, half }, &first);
    wait_held(f, 1);
    int incomplete = body_begin(f, "/big", half, false);
    http_client_poll(f->client, NULL, 50);
    struct got g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, half });
    assert_int_equal(g.status, 200);
    assert_true(raw_closed(incomplete));
    close(incomplete);
    g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, half + 1 });
    assert_int_equal(g.status, 503);
    assert_int_equal(first.calls, 0);
    http_reply(take_held(f), 200, NULL, NULL, STR_NONE);
    assert_true(client_finish(f->client));
    assert_int_equal(first.status, 200);
    free(body);
}

/* RFC 9110 section 15.5.9. */
static void a_body_that_does_not_come_is_408_and_reported(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /soon HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"));
    assert_true(raw_expect(fd, "{\"detail\": \"the body did not come in time\"}"));
    assert_true(raw_closed(fd));
    wait_idle(f); /* it is reported after it was said */
    assert_int_equal(f->refused_by_server, 408);
    f->refused_by_server = 0;
    close(fd);
    fd = raw_connect(f->port);
    assert_true(raw_send(fd, "POST /soon HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
    assert_true(raw_expect(fd, "\r\n\r\nhi"));
    assert_int_equal(f->refused_by_server, 0);
    close(fd);
}

/* A dozen clients could lock out all others otherwise, at the price of a few hundred bytes. */
static void bodies_that_are_only_announced_take_no_room(void **state)
{
    struct fixture *f = *state;
    int fds[8];
    for (size_t i = 0; i < 8; i++) {
        char head[128];
        snprintf(head, sizeof(head),
                 "POST /guarded HTTP/1.1\r\nHost: x\r\nX-Test: 1\r\nContent-Length: %d\r\n\r\nx",
                 IN_FLIGHT / 4 * 3);
        fds[i] = raw_connect(f->port);
        assert_true(raw_send(fds[i], head));
    }
    while (f->begun < 8)
        sched_yield();
    char *body = calloc(1, IN_FLIGHT / 2);
    assert_non_null(body);
    struct got g = fetch(f->client, f->port, "POST", "/big", (struct str){ body, IN_FLIGHT / 2 });
    assert_int_equal(g.status, 200);
    free(body);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
}

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
        TEST(client_that_sends_a_small_body_before_it_reads_still_sees_the_refusal),
        TEST(what_begin_lets_pass_is_handled),
        TEST(bodies_over_the_in_flight_limit_are_503_until_room_is_made),
        TEST(where_there_is_no_room_the_oldest_incomplete_body_ends),
        cmocka_unit_test_setup_teardown(where_there_is_no_room_the_oldest_incomplete_body_ends,
                                        setup_one_thread, teardown),
        TEST(a_complete_body_makes_no_room),
        TEST(bodies_that_are_only_announced_take_no_room),
        TEST(a_body_that_does_not_come_is_408_and_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
