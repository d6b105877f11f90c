/* What only the owner may send carries its moment: it is another's when we were paused since. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/actions.h"
#include "common/github/check_runs.h"
#include "common/github/dispatch.h"
#include "tests/unit/common/crypto/test_keys.h"

#define ROUNDS 500 /* of 10 ms */

/* By how much the boot clock is ahead of the kernel's: for so long we were paused. */
static time_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *to)
{
    int failed = (int)syscall(SYS_clock_gettime, id, to);
    to->tv_sec += id == CLOCK_BOOTTIME ? ahead_s : 0;
    return failed;
}

/* A GitHub that gives tokens and counts what comes besides. */
struct giver {
    int fd, taken; /* taken -1: nobody is there */
    char url[64];
    struct jwt_key *key;
    struct http_client *client;
    struct github *github;
    int calls, answers;
    bool nothing_failed;       /* what the first call is answered with */
    time_t paused_s;           /* for so long after that */
    struct github_answer last; /* its texts are gone */
};

static void listen_anywhere(struct giver *g)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);
    g->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(g->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(g->fd, 8), 0);
    assert_int_equal(getsockname(g->fd, (struct sockaddr *)&at, &size), 0);
    snprintf(g->url, sizeof(g->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
}

static void giver_open(struct giver *g)
{
    const struct http_client_options http = { .user_agent = "test" };
    struct why why;
    *g = (struct giver){ .taken = -1 };
    listen_anywhere(g);
    assert_int_equal(jwt_key_new(&g->key, str_of(KEY_A_PKCS8), &why), OK);
    assert_int_equal(http_client_new(&g->client, &http, &why), OK);
    const struct github_options options = {
        .api_url = g->url, .app_id = "12345", .key = g->key, .client = g->client
    };
    assert_int_equal(github_new(&g->github, &options, &why), OK);
    http_client_poll(g->client, NULL, 0);
}

static void giver_close(struct giver *g)
{
    github_free(g->github);
    http_client_free(g->client);
    jwt_key_free(g->key);
    close(g->fd);
}

static void reply(struct giver *g, const char *request)
{
    char text[256];
    const char *body = "{\"id\":9}", *status = "201 Created";
    if (strstr(request, "/installation "))
        body = "{\"id\":7}";
    else if (strstr(request, "/access_tokens "))
        body = "{\"token\":\"t\",\"expires_at\":\"2999-01-01T00:00:00Z\"}";
    else if (g->calls++ == 0 && g->nothing_failed) {
        body = "{\"message\":\"This workflow run cannot be retried\"}";
        status = "403 Forbidden";
        ahead_s += g->paused_s;
    }
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", status,
                     strlen(body), body);
    assert_int_equal(send(g->taken, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* A connection that closes without a word is one that nothing was sent on. */
static void serve(struct giver *g)
{
    char request[4096] = "";
    if (g->taken < 0)
        g->taken = accept4(g->fd, NULL, NULL, SOCK_CLOEXEC);
    if (g->taken < 0)
        return;
    ssize_t n = recv(g->taken, request, sizeof(request) - 1, MSG_DONTWAIT);
    if (n < 0)
        return;
    if (n > 0)
        reply(g, request);
    close(g->taken);
    g->taken = -1;
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct giver *g = opaque;
    g->last = *answer;
    g->answers++;
}

typedef enum err start_fn(struct giver *g, int64_t send_by_ms);

static enum err start_dispatch(struct giver *g, int64_t send_by_ms)
{
    struct why why;
    const struct dispatch d = { .repo = STR_LIT("org/repo"),
                                .event_type = "push",
                                .delivery = STR_LIT("d-1"),
                                .payload = STR_LIT("{}"),
                                .send_by_ms = send_by_ms };
    return dispatch_start(g->github, &d, answered, g, &why);
}

static enum err start_rerun(struct giver *g, int64_t send_by_ms)
{
    struct why why;
    return actions_rerun(g->github, STR_LIT("org/repo"), STR_LIT("77"), true, send_by_ms, answered,
                         g, &why);
}

static void written(void *opaque, const struct github_answer *answer, int64_t id)
{
    (void)id;
    answered(opaque, answer);
}

static enum err start_check_run(struct giver *g, int64_t send_by_ms)
{
    struct why why;
    const struct check_run run = { .name = STR_LIT("crcr/org/repo"),
                                   .head_sha = STR_LIT("c0ffee"),
                                   .status = STR_LIT("queued"),
                                   .send_by_ms = send_by_ms };
    return check_run_create(g->github, STR_LIT("org/repo"), &run, written, g, &why);
}

static start_fn *const starts[] = { start_dispatch, start_rerun, start_check_run };
#define STARTS (sizeof(starts) / sizeof(starts[0]))

/* May send within 30 s, is paused for so long, and starts the call. */
static void claim_and_start(struct giver *g, start_fn *start, time_t still_s)
{
    int64_t send_by_ms = clock_boot_ms() + 30000;
    ahead_s += still_s;
    http_client_poll(g->client, NULL, 0);
    assert_int_equal(start(g, send_by_ms), OK);
    for (int i = 0; i < ROUNDS && !g->answers; i++) {
        http_client_poll(g->client, NULL, 10);
        serve(g);
    }
    assert_int_equal(g->answers, 1);
}

static void what_was_claimed_too_long_ago_is_not_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < STARTS; i++) {
        struct giver g;
        giver_open(&g);
        claim_and_start(&g, starts[i], 31);
        assert_int_equal(g.calls, 0);
        assert_int_equal(g.last.err, ERR_RETRY);
        assert_true(g.last.because == GATE_IN_FLIGHT);
        assert_int_equal(g.last.sent_ms, 0);
        giver_close(&g);
    }
}

static void what_was_claimed_a_moment_ago_is_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < STARTS; i++) {
        struct giver g;
        giver_open(&g);
        claim_and_start(&g, starts[i], 29);
        assert_int_equal(g.calls, 1);
        assert_int_equal(g.last.err, OK);
        giver_close(&g);
    }
}

/* That nothing failed is answered while the process is paused; another may have made both calls
 * meanwhile. */
static void all_jobs_are_not_asked_for_under_a_claim_of_before_a_pause(void **state)
{
    (void)state;
    for (time_t paused_s = 29; paused_s <= 31; paused_s += 2) {
        struct giver g;
        giver_open(&g);
        g.nothing_failed = true;
        g.paused_s = paused_s;
        claim_and_start(&g, start_rerun, 0);
        assert_int_equal(g.calls, paused_s < 30 ? 2 : 1);
        assert_int_equal(g.last.err, paused_s < 30 ? OK : ERR_RETRY);
        assert_true(paused_s < 30 || (g.last.because == GATE_IN_FLIGHT && g.last.sent_ms == 0));
        giver_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_claimed_too_long_ago_is_not_sent),
        cmocka_unit_test(what_was_claimed_a_moment_ago_is_sent),
        cmocka_unit_test(all_jobs_are_not_asked_for_under_a_claim_of_before_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
