#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "common/base/buf.h"
#include "tests/unit/support/http_fixture.h"

/* ---- a server that says exactly what a test wants, one request after the other ------ */

struct step {
    const char *answer; /* NULL: none */
    bool close;         /* hang up afterwards */
};

struct fixture {
    struct http_client *client;
    int listen_fd;
    int port;
    pthread_t thread;
    bool threaded;
    const struct step *steps;
    size_t n_steps;
    atomic_int connections, requests;
    atomic_bool end;
    char seen[4096]; /* the last request; read after stop_server */
};

/* One request, head and declared body. */
static bool read_request(int fd, char *seen, size_t size)
{
    size_t len = 0;
    for (;;) {
        ssize_t n = recv(fd, seen + len, size - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        seen[len] = '\0';
        char *end = strstr(seen, "\r\n\r\n"), *declared = strstr(seen, "Content-Length: ");
        size_t body = declared && declared < end ? strtoul(declared + 16, NULL, 10) : 0;
        if (end && len >= (size_t)(end + 4 - seen) + body)
            return true;
    }
}

static int accept_one(struct fixture *f)
{
    struct pollfd p = { .fd = f->listen_fd, .events = POLLIN };
    while (!f->end && poll(&p, 1, 20) == 0)
        ;
    if (f->end)
        return -1;
    f->connections++;
    return accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
}

static void *serve(void *opaque)
{
    struct fixture *f = opaque;
    int fd = -1;
    for (size_t i = 0; i < f->n_steps;) {
        if (fd < 0 && (fd = accept_one(f)) < 0)
            return NULL;
        if (!read_request(fd, f->seen, sizeof(f->seen))) {
            close(fd);
            fd = -1;
            continue;
        }
        const struct step *s = &f->steps[i++];
        f->requests++;
        if (s->answer)
            send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
        if (s->close) {
            close(fd);
            fd = -1;
        }
    }
    while (!f->end)
        usleep(5000);
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void serve_steps(struct fixture *f, const struct step *steps, size_t n)
{
    f->steps = steps;
    f->n_steps = n;
    f->threaded = pthread_create(&f->thread, NULL, serve, f) == 0;
    assert_true(f->threaded);
}
#define SERVE(f, ...)                                                                              \
    static const struct step steps_[] = { __VA_ARGS__ };                                           \
    serve_steps(f, steps_, sizeof(steps_) / sizeof(steps_[0]))

static void stop_server(struct fixture *f)
{
    f->end = true;
    if (f->threaded)
        pthread_join(f->thread, NULL);
    f->threaded = false;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(f->listen_fd, (struct sockaddr *)&at, sizeof(at)) || listen(f->listen_fd, 16) ||
        getsockname(f->listen_fd, (struct sockaddr *)&at, &len))
        return -1;
    f->port = ntohs(at.sin_port);
    f->client = client_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http_client_free(f->client);
    stop_server(f);
    close(f->listen_fd);
    free(f);
    return 0;
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static enum err start_with(struct fixture *f, struct http_request *r, struct got *got,
                           struct why *why)
{
    static char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/a", f->port);
    r->url = url;
    return http_client_start(f->client, r, got_answer, got, why);
}

/* ---- requests ----------------------------------------------------------------------- */

static void method_headers_and_body_are_sent_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    struct headers h;
    char expected[256];
    SERVE(f, { HELLO, false });
    headers_init(&h);
    headers_put(&h, "Accept", STR_LIT("application/json"));
    headers_put(&h, "X-Empty", STR_LIT(""));
    headers_put_i64(&h, "X-Number", 7);
    struct http_request r = { .method = "PATCH", .headers = &h, .body = STR_LIT("{\"a\":1}") };
    assert_int_equal(start_with(f, &r, &g, &why), OK);
    assert_true(client_finish(f->client));
    stop_server(f);
    assert_int_equal(g.status, 200);
    assert_int_equal(g.http_version, 11);
    snprintf(expected, sizeof(expected),
             "PATCH /a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: test\r\n"
             "Accept: application/json\r\nX-Empty:\r\nX-Number: 7\r\n"
             "Content-Length: 7\r\n\r\n{\"a\":1}",
             f->port);
    assert_string_equal(f->seen, expected);
}

static void every_method_is_sent_as_it_is(void **state)
{
    struct fixture *f = *state;
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
    SERVE(f, { HELLO, false }, { HELLO, false }, { HELLO, false }, { HELLO, false },
          { HELLO, false });
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(fetch(f->client, f->port, methods[i], "/", STR_NONE).body, "hello");
        assert_memory_equal(f->seen, methods[i], strlen(methods[i]));
    }
    assert_int_equal(f->connections, 1); /* the handle and the connection are used again */
}

static void empty_post_says_that_it_is_empty(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { HELLO, false });
    fetch(f->client, f->port, "POST", "/", STR_NONE);
    stop_server(f);
    assert_non_null(strstr(f->seen, "Content-Length: 0\r\n"));
    assert_null(strstr(f->seen, "Content-Type"));
}

static void what_would_break_the_request_is_refused(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    struct headers h;
    headers_init(&h);
    headers_put(&h, "X-Bad", STR_LIT("a\r\nHost: evil"));
    struct http_request r = { .method = "GET", .headers = &h };
    assert_int_equal(start_with(f, &r, &g, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "X-Bad"));
    r = (struct http_request){ .method = "GE T" };
    assert_int_equal(start_with(f, &r, &g, &why), ERR_REFUSE);
    assert_int_equal(g.calls, 0);
    assert_int_equal(http_client_poll(f->client, NULL, 0), 0);
}

static void proxy_of_the_environment_is_not_used(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { HELLO, false });
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    struct got g = fetch(f->client, f->port, "GET", "/", STR_NONE);
    unsetenv("http_proxy");
    assert_int_equal(g.status, 200);
}

/* ---- answers ------------------------------------------------------------------------ */

static void headers_of_the_final_answer_are_given(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { "HTTP/1.1 103 Early Hints\r\nRetry-After: 1\r\nAllow: wrong\r\n\r\n"
               "HTTP/1.1 429 Too Many\r\nretry-after:  60 \r\nContent-Length: 2\r\n\r\nno",
               false });
    struct got g = fetch(f->client, f->port, "GET", "/", STR_NONE);
    assert_int_equal(g.err, OK);
    assert_int_equal(g.status, 429);
    assert_string_equal(g.retry_after, "60");
    assert_string_equal(g.allow, "");
    assert_string_equal(g.body, "no");
}

static void redirect_is_an_answer_like_others(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { "HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
               false });
    assert_int_equal(fetch(f->client, f->port, "POST", "/", STR_LIT("x")).status, 307);
}

static void answer_over_the_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    SERVE(f, { HELLO, false }, { HELLO, false });
    struct http_request r = { .method = "GET", .max_body_bytes = 4 };
    assert_int_equal(start_with(f, &r, &g, &why), OK);
    assert_true(client_finish(f->client));
    assert_int_equal(g.err, ERR_REFUSE);
    assert_string_equal(g.reason, "the answer is too large");
}

/* ---- failures: what certainly was not sent, and what may have arrived ------------------ */

static void refused_connection_was_not_sent(void **state)
{
    struct fixture *f = *state;
    int closed_port = f->port;
    close(f->listen_fd);
    f->listen_fd = -1;
    struct got g = fetch(f->client, closed_port, "POST", "/", STR_LIT("x"));
    assert_int_equal(g.calls, 1);
    assert_int_equal(g.err, ERR_RETRY);
}

static void unknown_host_was_not_sent(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    struct http_request r = { .method = "POST", .url = "https://no-such-host.invalid/" };
    assert_int_equal(http_client_start(f->client, &r, got_answer, &g, &why), OK);
    assert_true(client_finish(f->client));
    assert_int_equal(g.err, ERR_RETRY);
}

static void plain_answer_to_a_tls_greeting_was_not_sent(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    char url[64];
    SERVE(f, { HELLO, true });
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", f->port);
    struct http_request r = { .method = "POST", .url = url, .timeout_ms = 300 };
    assert_int_equal(http_client_start(f->client, &r, got_answer, &g, &why), OK);
    assert_true(client_finish(f->client));
    assert_int_equal(g.err, ERR_RETRY);
}

static void hang_up_without_an_answer_is_unknown(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { NULL, true });
    struct got g = fetch(f->client, f->port, "POST", "/", STR_LIT("x"));
    assert_int_equal(g.err, ERR_UNKNOWN);
    assert_string_not_equal(g.reason, "");
}

static void post_is_never_sent_twice_by_itself(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { HELLO, false }, { NULL, true }, { HELLO, false });
    assert_int_equal(fetch(f->client, f->port, "POST", "/", STR_LIT("1")).status, 200);
    struct got g = fetch(f->client, f->port, "POST", "/", STR_LIT("2"));
    assert_int_equal(g.err, ERR_UNKNOWN);
    assert_int_equal(f->requests, 2);
}

static void get_on_a_connection_that_died_is_sent_again(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { HELLO, false }, { NULL, true }, { HELLO, false });
    assert_int_equal(fetch(f->client, f->port, "GET", "/", STR_NONE).status, 200);
    assert_int_equal(fetch(f->client, f->port, "GET", "/", STR_NONE).status, 200);
    assert_int_equal(f->requests, 3);
}

static void half_an_answer_is_unknown(void **state)
{
    struct fixture *f = *state;
    SERVE(f, { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", true });
    assert_int_equal(fetch(f->client, f->port, "GET", "/", STR_NONE).err, ERR_UNKNOWN);
}

static void no_answer_in_time_is_unknown(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    SERVE(f, { NULL, false });
    int64_t began_ms = clock_mono_ms();
    struct http_request r = { .method = "POST", .body = STR_LIT("x"), .timeout_ms = 100 };
    assert_int_equal(start_with(f, &r, &g, &why), OK);
    assert_true(client_finish(f->client));
    assert_int_equal(g.err, ERR_UNKNOWN);
    assert_in_range(clock_mono_ms() - began_ms, 100, TEST_LIMIT_MS / 2);
}

static void free_gives_up_what_is_in_flight(void **state)
{
    struct fixture *f = *state;
    struct got g = { 0 };
    struct why why;
    SERVE(f, { NULL, false });
    struct http_request r = { .method = "POST", .body = STR_LIT("x") };
    assert_int_equal(start_with(f, &r, &g, &why), OK);
    http_client_free(f->client);
    f->client = NULL;
    assert_int_equal(g.calls, 1);
    assert_int_equal(g.err, ERR_UNKNOWN);
}

/* ---- the loop ----------------------------------------------------------------------- */

struct chain {
    struct fixture *f;
    int left;
};

static void start_next(void *opaque, const struct http_answer *a)
{
    struct chain *chain = opaque;
    struct why why;
    char url[64];
    assert_int_equal(a->status, 200);
    if (--chain->left == 0)
        return;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", chain->f->port);
    struct http_request r = { .method = "GET", .url = url };
    assert_int_equal(http_client_start(chain->f->client, &r, start_next, chain, &why), OK);
}

static void callback_may_start_the_next_request(void **state)
{
    struct fixture *f = *state;
    struct chain chain = { f, 4 };
    struct http_answer begin = { .status = 200 };
    SERVE(f, { HELLO, false }, { HELLO, false }, { HELLO, false });
    start_next(&chain, &begin);
    assert_true(client_finish(f->client));
    assert_int_equal(chain.left, 0);
    assert_int_equal(f->connections, 1);
}

static void wake_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    struct wake wake;
    struct why why;
    assert_int_equal(wake_init(&wake, &why), OK);
    int64_t began_ms = clock_mono_ms();
    http_client_poll(f->client, &wake, 50);
    assert_true(clock_mono_ms() - began_ms >= 45);
    wake_up(&wake);
    http_client_poll(f->client, &wake, TEST_LIMIT_MS);
    assert_true(clock_mono_ms() - began_ms < TEST_LIMIT_MS);
    wake_clear(&wake);
}

/* ---- URLs --------------------------------------------------------------------------- */

static void only_safe_urls_are_accepted(void **state)
{
    static const struct {
        const char *url;
        bool plain, with_allow_http;
    } cases[] = {
        { "https://api.github.com/repos", true, true },
        { "https://[2606:4700::1]/", true, true },
        { "http://127.0.0.1:8080/x", true, true },
        { "http://127.9.9.9/", true, true },
        { "http://[::1]:80/", true, true },
        { "http://localhost/", true, true },
        { "HTTP://LOCALHOST/", true, true },
        { "http://api.github.com/", false, true },
        { "http://127.0.0.1.evil.example/", false, true },
        { "http://localhost.evil.example/", false, true },
        { "http://[::2]/", false, true },
        { "http://10.0.0.1/", false, true },
        { "http://0.0.0.0/", false, true },
        { "https://user@example.com/", false, false },
        { "https://user:secret@example.com/", false, false },
        { "http://127.0.0.1@evil.example/", false, false },
        { "ftp://example.com/", false, false },
        { "file:///etc/passwd", false, false },
        { "gopher://localhost/", false, false },
        { "example.com", false, false },
        { "https://", false, false },
        { "https:example.com/", false, false },
        { "https:/example.com/", false, false },
        { "https:///example.com/", false, false },
        { "http:/127.0.0.1/", false, false },
        { "https://exa mple.com/", false, false },
        { "https://example.com:99999/", false, false },
        { "https://example.com/a b", false, false },
        { "https://example.com/\r\nX: y", false, false },
        { "", false, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct why why = { "" };
        bool plain = !http_url_check(cases[i].url, false, &why);
        bool allowed = !http_url_check(cases[i].url, true, &why);
        if (plain != cases[i].plain || allowed != cases[i].with_allow_http)
            fail_msg("%s: %d %d", cases[i].url, plain, allowed);
        assert_null(strstr(why.text, "secret"));
    }
}

static void path_segments_are_encoded(void **state)
{
    struct buf CLEANUP(buf_clear) to;
    (void)state;
    buf_init(&to, 200);
    http_encode(&to, STR_LIT("aZ09-._~/ ?#%&+:\xc3\xa4\0"));
    assert_string_equal(to.ptr, "aZ09-._~%2F%20%3F%23%25%26%2B%3A%C3%A4%00");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(method_headers_and_body_are_sent_and_nothing_else),
        TEST(every_method_is_sent_as_it_is),
        TEST(empty_post_says_that_it_is_empty),
        TEST(what_would_break_the_request_is_refused),
        TEST(proxy_of_the_environment_is_not_used),
        TEST(headers_of_the_final_answer_are_given),
        TEST(redirect_is_an_answer_like_others),
        TEST(answer_over_the_limit_is_refused),
        TEST(refused_connection_was_not_sent),
        TEST(unknown_host_was_not_sent),
        TEST(plain_answer_to_a_tls_greeting_was_not_sent),
        TEST(hang_up_without_an_answer_is_unknown),
        TEST(post_is_never_sent_twice_by_itself),
        TEST(get_on_a_connection_that_died_is_sent_again),
        TEST(half_an_answer_is_unknown),
        TEST(no_answer_in_time_is_unknown),
        TEST(free_gives_up_what_is_in_flight),
        TEST(callback_may_start_the_next_request),
        TEST(wake_ends_the_wait),
        cmocka_unit_test(only_safe_urls_are_accepted),
        cmocka_unit_test(path_segments_are_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
