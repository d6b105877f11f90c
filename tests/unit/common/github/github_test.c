#include <arpa/inet.h>
#include <poll.h>
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
#include "common/github/check_runs.h"
#include "common/github/github.h"
#include "tests/unit/common/crypto/test_keys.h"
#include "tests/unit/support/freed.h"

/* The clocks as somebody sets them: by how much they are ahead of the kernel's. */
static time_t wall_ahead_s, mono_ahead_s;

int clock_gettime(clockid_t id, struct timespec *to)
{
    int failed = (int)syscall(SYS_clock_gettime, id, to);
    to->tv_sec += id == CLOCK_REALTIME ? wall_ahead_s : id == CLOCK_MONOTONIC ? mono_ahead_s : 0;
    return failed;
}

/* A GitHub that takes connections and never says a word. */
struct silent {
    int fd;
    char url[64];
    struct jwt_key *key;
    struct http_client *client;
    struct github *github;
    int answers;
    enum err err; /* of the last answer */
    int64_t sent_ms;
    struct github_answer last; /* its texts are gone */
    enum err again;            /* what came of the call that the answer made */
};

static struct gate *gate; /* of the next open_by; NULL: none */

/* ca_file NULL: by http. */
static void open_by(struct silent *s, const char *ca_file)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);
    const struct http_client_options http = { .user_agent = "test", .ca_file = ca_file };
    struct why why;
    *s = (struct silent){ .fd = socket(AF_INET, SOCK_STREAM, 0) };
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &size), 0);
    snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%d", ca_file ? "https" : "http",
             ntohs(at.sin_port));
    assert_int_equal(jwt_key_new(&s->key, str_of(KEY_A_PKCS8), &why), OK);
    assert_int_equal(http_client_new(&s->client, &http, &why), OK);
    const struct github_options options = {
        .api_url = s->url,
        .app_id = "12345",
        .key = s->key,
        .client = s->client,
        .gate = gate,
    };
    assert_int_equal(github_new(&s->github, &options, &why), OK);
}

static void silent_open(struct silent *s)
{
    open_by(s, NULL);
}

static void silent_close(struct silent *s)
{
    github_free(s->github);
    http_client_free(s->client);
    jwt_key_free(s->key);
    close(s->fd);
}

static int64_t send_by_ms; /* of the next call; 0: whenever */

static enum err call(struct silent *s, enum github_auth auth, github_answered_fn *done)
{
    const struct github_request request = {
        .auth = auth,
        .permission = GITHUB_CONTENTS_WRITE,
        .method = "GET",
        .repo = STR_LIT("org/repo"),
        .path = "/app",
        .send_by_ms = send_by_ms,
    };
    struct why why;
    return github_start(s->github, &request, done, s, &why);
}

static void answered(void *opaque, const struct github_answer *answer)
{
    struct silent *s = opaque;
    assert_int_not_equal(answer->err, OK);
    s->err = answer->err;
    s->sent_ms = answer->sent_ms;
    s->last = *answer;
    s->answers++;
}

/* As a pass of the reporter's goes on with its next check run. */
static void answered_and_goes_on(void *opaque, const struct github_answer *answer)
{
    struct silent *s = opaque;
    answered(opaque, answer);
    s->again = call(s, GITHUB_AS_APP, answered);
}

/* It is no limit of GitHub's: another may go at once. */
static void what_was_too_late_to_be_sent_waits_for_nothing(void **state)
{
    struct silent s;
    (void)state;
    silent_open(&s);
    send_by_ms = clock_boot_ms() - 1;
    assert_int_equal(call(&s, GITHUB_AS_APP, answered), OK);
    send_by_ms = 0;
    for (int n = 0; n < 100 && !s.answers; n++)
        http_client_poll(s.client, NULL, 50);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.err, ERR_RETRY);
    assert_int_equal(s.sent_ms, 0);
    assert_true(s.last.because == GATE_IN_FLIGHT);
    assert_in_range(s.last.wait_until_ms, 1, clock_mono_ms());
    assert_int_equal(call(&s, GITHUB_AS_APP, answered), OK);
    silent_close(&s);
}

static void tokens_are_wiped(void **state)
{
    static const char *const begins[] = { "eyJ", "Bearer eyJ" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct silent s;
        silent_open(&s);
        assert_int_equal(call(&s, GITHUB_AS_APP, answered), OK);
        freed_watch(begins[i]);
        silent_close(&s);
        assert_false(freed_has_secret());
        assert_int_equal(s.answers, 1);
    }
}

static void every_call_is_answered_when_it_ends(void **state)
{
    struct silent s;
    (void)state;
    silent_open(&s);
    assert_int_equal(call(&s, GITHUB_AS_APP, answered), OK);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), OK);
    silent_close(&s);
    assert_int_equal(s.answers, 2);
}

static void no_call_begins_while_it_ends(void **state)
{
    static const enum github_auth each[] = { GITHUB_AS_APP, GITHUB_AS_INSTALLATION };
    (void)state;
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct silent s;
        silent_open(&s);
        assert_int_equal(call(&s, each[i], answered_and_goes_on), OK);
        silent_close(&s);
        assert_int_equal(s.answers, 1);
        assert_int_equal(s.again, ERR_RETRY);
    }
}

/* Answers the request that is under way; another one follows it. */
static void say_more(struct silent *s, const char *text)
{
    struct pollfd coming = { .fd = s->fd, .events = POLLIN };
    for (int i = 0; i < 100 && poll(&coming, 1, 0) == 0; i++)
        http_client_poll(s->client, NULL, 100);
    int taken = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK);
    assert_true(taken >= 0);
    http_client_poll(s->client, NULL, 100); /* it is written */
    assert_int_equal(write(taken, text, strlen(text)), (ssize_t)strlen(text));
    for (int i = 0; i < 100 && !s->answers && poll(&coming, 1, 0) == 0; i++)
        http_client_poll(s->client, NULL, 100);
    close(taken);
}

/* Answers the request that is under way, and lets the answer come. */
static void say(struct silent *s, const char *text)
{
    say_more(s, text);
    assert_int_equal(s->answers, 1);
}

static bool dispatch_holds(struct github *g, struct str repo, struct github_answer *ret)
{
    const struct gate_call call = { .repo = repo, .kind = BUDGET_DISPATCH };
    return github_holds(g, &call, ret);
}

/* A limit stands as long as GitHub said, whatever the clock is set to meanwhile. */
static void a_clock_that_is_set_moves_no_deadline(void **state)
{
    struct silent s;
    struct github_answer blocked;
    (void)state;
    silent_open(&s);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), OK);
    say(&s, "HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n");
    int64_t began_ms = clock_mono_ms();
    wall_ahead_s = 600;
    assert_true(dispatch_holds(s.github, STR_LIT("org/repo"), &blocked));
    assert_in_range(blocked.wait_until_ms - began_ms, 25000, 30000);
    mono_ahead_s = 31;
    wall_ahead_s = -600;
    assert_false(dispatch_holds(s.github, STR_LIT("org/repo"), &blocked));
    wall_ahead_s = mono_ahead_s = 0;
    silent_close(&s);
}

/* Nobody asked GitHub for the calls of the next minute: they wait, and then GitHub is asked. */
static void a_refused_lookup_refuses_its_call_and_is_a_wait_for_the_next_ones(void **state)
{
    struct silent s;
    struct github_answer blocked;
    (void)state;
    silent_open(&s);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), OK);
    say(&s, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(s.last.err, ERR_REFUSE);
    assert_int_equal(s.last.status, 404);
    assert_int_equal(s.last.because, GATE_TOKEN);
    assert_in_range(s.last.wait_until_ms - began_ms, 55000, 60000);
    assert_true(dispatch_holds(s.github, STR_LIT("org/repo"), &blocked));
    assert_int_equal(blocked.err, ERR_RETRY);
    assert_true(blocked.because == GATE_TOKEN && blocked.sent_ms == 0);
    assert_int_equal(blocked.wait_until_ms, s.last.wait_until_ms);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), ERR_RETRY);
    assert_false(dispatch_holds(s.github, STR_LIT("org/other"), &blocked));
    mono_ahead_s = 61;
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), OK);
    mono_ahead_s = 0;
    silent_close(&s);
}

/* Another repository of the account may be one that the App is installed on. */
static void a_refused_token_is_a_wait_for_its_repository(void **state)
{
    struct silent s;
    struct github_answer blocked;
    (void)state;
    silent_open(&s);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered), OK);
    say_more(&s, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{\"id\":7}");
    say(&s, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(s.last.err, ERR_REFUSE);
    assert_int_equal(s.last.because, GATE_TOKEN);
    assert_true(dispatch_holds(s.github, STR_LIT("ORG/repo"), &blocked));
    assert_true(blocked.err == ERR_RETRY && blocked.because == GATE_TOKEN);
    assert_false(dispatch_holds(s.github, STR_LIT("org/other"), &blocked));
    silent_close(&s);
}

/* Who knows what others have sent in the meantime. */
static void a_call_that_waited_long_for_its_token_pays_again(void **state)
{
    const struct budget_rules rules = { .limit = { [BUDGET_REQUESTS_HOUR] = 2 }, .replicas = 1 };
    struct silent s;
    (void)state;
    gate = gate_new(&rules);
    silent_open(&s);
    assert_int_equal(call(&s, GITHUB_AS_INSTALLATION, answered),
                     OK); /* the last one that there is */
    mono_ahead_s = 2;
    say_more(&s, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{\"id\":7}");
    say(&s, "HTTP/1.1 201 Created\r\nContent-Length: 49\r\n\r\n"
            "{\"token\":\"t\",\"expires_at\":\"2099-01-01T00:00:00Z\"}");
    mono_ahead_s = 0;
    assert_int_equal(s.answers, 1);
    assert_true(s.last.err == ERR_RETRY && s.last.because == GATE_BUDGET && !s.last.sent_ms);
    silent_close(&s);
    gate_free(gate);
    gate = NULL;
}

static void none_found(void *opaque, const struct check_run_found *run)
{
    (void)opaque;
    (void)run;
    fail();
}

static void find_ended(void *opaque, const struct github_answer *answer, int64_t id)
{
    (void)opaque;
    (void)answer;
    (void)id;
}

/* How many of n searches our budget refuses; the others wait for their token. */
static int finds_refused(struct silent *s, enum budget_class class, int n)
{
    const struct check_run run = { .name = STR_LIT("crcr/o/r"),
                                   .head_sha = STR_LIT("abc"),
                                   .class = class,
                                   .creates_next = true };
    struct why why;
    int refused = 0;
    for (int i = 0; i < n; i++) {
        enum err err = check_run_find(s->github, STR_LIT("org/repo"), &run, none_found, find_ended,
                                      NULL, &why);
        assert_true(!err || err == ERR_RETRY);
        refused += !!err;
    }
    return refused;
}

/* A search costs six points, the creation behind it included; of the 225 at hand the rest may have
 * half. */
static void a_search_is_of_its_check_runs_class(void **state)
{
    const struct budget_rules rules = { .limit = { [BUDGET_POINTS_MINUTE] = 900 }, .replicas = 1 };
    struct silent s;
    (void)state;
    gate = gate_new(&rules);
    silent_open(&s);
    assert_in_range(finds_refused(&s, BUDGET_REST, 150), 120, 133);
    assert_int_equal(finds_refused(&s, BUDGET_AGGREGATE, 15), 0);
    silent_close(&s);
    gate_free(gate);
    gate = NULL;
}

/* As one that is refused: it can be mended, and then the call is made. */
static void without_certificates_nothing_is_sent_and_nothing_given_up(void **state)
{
    struct silent s;
    (void)state;
    open_by(&s, "/nonexistent/ca.pem");
    assert_int_equal(call(&s, GITHUB_AS_APP, answered), OK);
    for (int i = 0; i < 100 && !s.answers; i++)
        http_client_poll(s.client, NULL, 100);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.err, ERR_RETRY);
    assert_int_equal(s.sent_ms, 0);
    silent_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_too_late_to_be_sent_waits_for_nothing),
        cmocka_unit_test(tokens_are_wiped),
        cmocka_unit_test(every_call_is_answered_when_it_ends),
        cmocka_unit_test(no_call_begins_while_it_ends),
        cmocka_unit_test(without_certificates_nothing_is_sent_and_nothing_given_up),
        cmocka_unit_test(a_clock_that_is_set_moves_no_deadline),
        cmocka_unit_test(a_refused_lookup_refuses_its_call_and_is_a_wait_for_the_next_ones),
        cmocka_unit_test(a_refused_token_is_a_wait_for_its_repository),
        cmocka_unit_test(a_call_that_waited_long_for_its_token_pays_again),
        cmocka_unit_test(a_search_is_of_its_check_runs_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
