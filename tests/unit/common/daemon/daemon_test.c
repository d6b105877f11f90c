/* Each case runs a whole daemon in a process of its own: exit codes, signals and the admin port are
 * what is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/daemon/daemon.h"

enum { DEADLINE_MS = 20000, FEW = 64, MANY = 512 };

/* ---- a daemon with two roles, whose behaviour each case sets before it forks ---- */

static struct {
    enum err start_err;
    bool one_fails;
    bool one_ends;
    bool one_hangs;
    bool not_ready;
    bool few_descriptors;
    bool watches;
    bool shows_limits;
    int64_t silent_ms; /* the thread that it watches */
} behave;

static enum err run_until_stopped(struct role_ctx *r, void *opaque, struct why *why)
{
    (void)opaque;
    metrics_add(role_metrics(r), 0, NULL, 1);
    if (behave.not_ready)
        role_ready(r, "no allowlist yet");
    else
        role_ready(r, NULL);
    while (!role_stopping(r)) {
        role_alive(r);
        wake_wait(role_wake(r), 1000);
    }
    (void)why;
    return OK;
}

static enum err run_second(struct role_ctx *r, void *opaque, struct why *why)
{
    if (behave.one_fails)
        return why_set(why, ERR_STOP, "the broker is gone for good");
    if (behave.one_ends)
        return OK;
    enum err err = run_until_stopped(r, opaque, why);
    while (behave.one_hangs)
        wake_wait(role_wake(r), -1), poll(NULL, 0, 10);
    return err;
}

static enum err start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why)
{
    (void)check_only;
    *opaque = mem_alloc(1, 1);
    struct rlimit core;
    if (behave.shows_limits && getrlimit(RLIMIT_CORE, &core) == 0)
        printf("core=%d dumpable=%d\n", (int)core.rlim_max, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    if (behave.watches) {
        atomic_store(daemon_watch(ctx, "follower"), clock_mono_ms() - behave.silent_ms);
        atomic_store(daemon_watch(ctx, "second"), clock_mono_ms());
    }
    return behave.start_err ? why_set(why, behave.start_err, "as the test says") : OK;
}

static const struct role roles[] = {
    { "router", "Routes.", run_until_stopped },
    { "l1", "Sends.", run_second },
};
static const struct metric_family families[] = {
    { "crcr_turns_total", METRIC_COUNTER, "Turns.", { NULL } },
};
static const struct daemon_spec spec = {
    .daemon = DAEMON_DISPATCHER,
    .name = "crcr-dispatcher",
    .summary = "sends",
    .admin_default = "127.0.0.1:0",
    .roles = roles,
    .n_roles = 2,
    .families = families,
    .n_families = 1,
    .start = start,
    .stop = free,
};

static char *good[] = { "KAFKA_BROKERS=k:1",        "REDIS_ENDPOINT=r:1", "GITHUB_APP_ID=1",
                        "GITHUB_APP_PRIVATE_KEY=x", "ALLOWLIST_URL=/a",   NULL };
static char *bad[] = { "CRCR_LOG_LEVEL=loud", NULL };

/* ---- running it ---- */

struct child {
    pid_t pid;
    int fd; /* its stdout and stderr */
    struct buf text;
};

static void child_start(struct child *c, char *const *environment, char *a, char *b)
{
    int fds[2];
    char *argv[] = { "crcr-dispatcher", a, b, NULL };
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        close(fds[1]);
        if (behave.few_descriptors)
            setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FEW, MANY });
        int code = daemon_main(&spec, a ? b ? 3 : 2 : 1, argv, environment);
        fflush(NULL);
        exit(code); /* and LeakSanitizer has its say */
    }
    close(fds[1]);
    c->fd = fds[0];
    buf_init(&c->text, 1 << 20);
}

/* Reads what the child says until the text holds what (NULL: until it ends). */
static void child_read(struct child *c, const char *what)
{
    int64_t end_ms = clock_mono_ms() + DEADLINE_MS;
    char chunk[4096];
    while (!what || !strstr(buf_str(&c->text).ptr, what)) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        if (poll(&p, 1, (int)(end_ms - clock_mono_ms())) <= 0)
            fail_msg("waited for \"%s\" in: %s", what ? what : "the end", buf_str(&c->text).ptr);
        ssize_t n = read(c->fd, chunk, sizeof(chunk));
        if (n <= 0 && !what)
            return;
        if (n <= 0)
            fail_msg("it ended without \"%s\": %s", what, buf_str(&c->text).ptr);
        buf_put(&c->text, (struct str){ chunk, (size_t)n });
    }
}

/* Its exit code; 128 + the signal that killed it. */
static int child_end(struct child *c)
{
    int status;
    child_read(c, NULL);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    close(c->fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool says(const struct child *c, const char *what)
{
    return strstr(buf_str(&c->text).ptr, what);
}

static int run(struct child *c, char *const *environment, char *a, char *b)
{
    child_start(c, environment, a, b);
    return child_end(c);
}

/* GET on the admin port; the whole answer in *to. */
static void get(const struct child *c, const char *path, struct buf *to)
{
    const char *port = strstr(buf_str(&c->text).ptr, "\"port\":");
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(port + 7)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char chunk[4096];
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int n = snprintf(chunk, sizeof(chunk),
                     "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, chunk, (size_t)n), n);
    buf_reset(to);
    ssize_t got;
    while ((got = read(fd, chunk, sizeof(chunk))) > 0)
        buf_put(to, (struct str){ chunk, (size_t)got });
    close(fd);
}

static void answers(const struct child *c, const char *path, const char *status, const char *text)
{
    struct buf CLEANUP(buf_clear) answer;
    buf_init(&answer, 1 << 20);
    get(c, path, &answer);
    if (!str_starts(buf_str(&answer), status) || !strstr(buf_str(&answer).ptr, text))
        fail_msg("GET %s: %s", path, buf_str(&answer).ptr);
}

static int reset(void **state)
{
    (void)state;
    memset(&behave, 0, sizeof(behave));
    return 0;
}

/* ---- cases ---- */

static void help_and_version_exit_0(void **state)
{
    (void)state;
    struct child c;
    assert_int_equal(run(&c, bad, "--help", NULL), 0);
    assert_true(says(&c, "KAFKA_BROKERS  (required)") && says(&c, "router     Routes."));
    buf_clear(&c.text);
    assert_int_equal(run(&c, bad, "--version", NULL), 0);
    assert_true(says(&c, "crcr-dispatcher "));
    buf_clear(&c.text);
}

static void bad_usage_and_configuration_exit_2(void **state)
{
    (void)state;
    static char *const arguments[][2] = {
        { "--bogus", NULL }, { "--roles", "l9" }, { NULL, NULL }, { "--check-config", NULL }
    };
    static const char *const reasons[] = { "--bogus: unknown",
                                           "no role \\\"l9\\\"; accepted: router, l1",
                                           "CRCR_LOG_LEVEL", "CRCR_LOG_LEVEL=\"loud\": accepted" };
    for (size_t i = 0; i < 4; i++) {
        struct child c;
        assert_int_equal(run(&c, i == 1 ? good : bad, arguments[i][0], arguments[i][1]), 2);
        if (!says(&c, reasons[i]))
            fail_msg("no \"%s\" in: %s", reasons[i], buf_str(&c.text).ptr);
        buf_clear(&c.text);
    }
}

static void check_config_prints_what_is_in_force(void **state)
{
    (void)state;
    struct child c;
    assert_int_equal(run(&c, good, "--check-config", NULL), 0);
    assert_true(says(&c, "GITHUB_APP_PRIVATE_KEY=(set)\n") && says(&c, "KAFKA_BROKERS=k:1\n"));
    assert_true(says(&c, "The configuration is good."));
    buf_clear(&c.text);
    behave.start_err = ERR_REFUSE;
    assert_int_equal(run(&c, good, "--check-config", NULL), 2);
    assert_true(says(&c, "as the test says"));
    buf_clear(&c.text);
}

/* LeakSanitizer has to attach. */
static void it_leaves_no_core_and_nobody_may_attach(void **state)
{
    (void)state;
    struct child c;
    behave.shows_limits = true;
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 4096 }); /* where it may not be raised: 0 already */
    assert_int_equal(run(&c, good, "--check-config", NULL), 0);
#ifdef CRCR_SANITIZED
    assert_true(says(&c, "core=0 dumpable=1\n"));
#else
    assert_true(says(&c, "core=0 dumpable=0\n"));
#endif
    buf_clear(&c.text);
}

static void start_that_fails_exits_2_or_1(void **state)
{
    (void)state;
    static const enum err errs[] = { ERR_REFUSE, ERR_STOP, ERR_RETRY };
    static const int codes[] = { 2, 2, 1 };
    for (size_t i = 0; i < 3; i++) {
        struct child c;
        behave.start_err = errs[i];
        assert_int_equal(run(&c, good, NULL, NULL), codes[i]);
        assert_true(says(&c, "as the test says"));
        buf_clear(&c.text);
    }
}

static void sigterm_and_sigint_drain_and_exit_0(void **state)
{
    (void)state;
    static const int signals[] = { SIGTERM, SIGINT };
    for (size_t i = 0; i < 2; i++) {
        struct child c;
        child_start(&c, good, NULL, NULL);
        child_read(&c, "\"role\":\"l1\"");
        kill(c.pid, SIGPIPE); /* ignored */
        kill(c.pid, signals[i]);
        assert_int_equal(child_end(&c), 0);
        assert_true(says(&c, i ? "\"SIGINT\"" : "\"SIGTERM\""));
        assert_true(says(&c, "\"event\":\"stopped\",\"exit_code\":0"));
        buf_clear(&c.text);
    }
}

static void only_the_chosen_roles_run(void **state)
{
    (void)state;
    struct child c;
    behave.one_fails = true; /* l1, which is not chosen */
    child_start(&c, good, "--roles", "router");
    child_read(&c, "role_started");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 0);
    assert_false(says(&c, "\"role\":\"l1\""));
    buf_clear(&c.text);
}

static void a_failed_role_takes_the_daemon_with_it(void **state)
{
    (void)state;
    struct child c;
    behave.one_fails = true;
    assert_int_equal(run(&c, good, NULL, NULL), 1);
    assert_true(says(&c, "\"role_failed\",\"role\":\"l1\",\"kind\":\"stop\""));
    assert_true(says(&c, "the broker is gone for good"));
    assert_true(says(&c, "\"role_stopped\",\"role\":\"router\""));
    buf_clear(&c.text);
}

static void a_role_that_ends_by_itself_has_failed(void **state)
{
    (void)state;
    struct child c;
    behave.one_ends = true;
    assert_int_equal(run(&c, good, NULL, NULL), 1);
    assert_true(says(&c, "it ended without being asked to"));
    buf_clear(&c.text);
}

static void a_second_signal_ends_a_drain_that_hangs(void **state)
{
    (void)state;
    struct child c;
    behave.one_hangs = true;
    child_start(&c, good, NULL, NULL);
    child_read(&c, "\"role\":\"l1\"");
    kill(c.pid, SIGTERM);
    child_read(&c, "\"role_stopped\",\"role\":\"router\"");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 1);
    assert_true(says(&c, "second signal"));
    assert_true(says(&c, "l1 ("));
    buf_clear(&c.text);
}

static void the_admin_port_tells_health_readiness_and_metrics(void **state)
{
    (void)state;
    struct child c;
    child_start(&c, good, "--roles", "router");
    child_read(&c, "role_started");
    int64_t end_ms = clock_mono_ms() + DEADLINE_MS;
    struct buf CLEANUP(buf_clear) answer;
    buf_init(&answer, 1 << 16);
    do
        get(&c, "/readyz", &answer);
    while (!str_starts(buf_str(&answer), "HTTP/1.1 200") && clock_mono_ms() < end_ms);
    answers(&c, "/readyz", "HTTP/1.1 200", "{\"ok\":true}");
    answers(&c, "/healthz", "HTTP/1.1 200", "{\"ok\":true}");
    answers(&c, "/metrics", "HTTP/1.1 200", "text/plain; version=0.0.4");
    answers(&c, "/metrics", "HTTP/1.1 200", "\ncrcr_turns_total 1\n");
    answers(&c, "/metrics", "HTTP/1.1 200", "\ncrcr_role_healthy{role=\"router\"} 1\n");
    answers(&c, "/metrics", "HTTP/1.1 200", "\nprocess_resident_memory_bytes ");
    answers(&c, "/other", "HTTP/1.1 404", "");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 0);
    buf_clear(&c.text);
}

static void a_daemon_takes_all_descriptors_that_it_may_have(void **state)
{
    (void)state;
    struct child c;
    behave.few_descriptors = true;
    child_start(&c, good, "--roles", "router");
    child_read(&c, "role_started");
    answers(&c, "/metrics", "HTTP/1.1 200", "\nprocess_max_fds 512\n");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 0);
    buf_clear(&c.text);
}

static void not_ready_and_unhealthy_are_503_with_the_reason(void **state)
{
    (void)state;
    struct child c;
    behave.not_ready = behave.one_hangs = true;
    child_start(&c, good, NULL, NULL);
    child_read(&c, "\"role\":\"l1\"");
    answers(&c, "/readyz", "HTTP/1.1 503", "\"router: ");
    kill(c.pid, SIGTERM); /* l1 hangs, so that the port still answers */
    child_read(&c, "\"role_stopped\",\"role\":\"router\"");
    int64_t end_ms = clock_mono_ms() + DEADLINE_MS;
    struct buf CLEANUP(buf_clear) answer;
    buf_init(&answer, 1 << 16);
    do
        get(&c, "/healthz", &answer);
    while (str_starts(buf_str(&answer), "HTTP/1.1 200") && clock_mono_ms() < end_ms);
    answers(&c, "/healthz", "HTTP/1.1 503", "\"router: its thread has ended\"");
    answers(&c, "/readyz", "HTTP/1.1 503", "[\"stopping\",\"router: no allowlist yet\"");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 1);
    buf_clear(&c.text);
}

static void a_watched_thread_counts_as_a_role_does(void **state)
{
    (void)state;
    struct child c;
    behave.watches = true;
    child_start(&c, good, NULL, NULL);
    child_read(&c, "\"role\":\"l1\"");
    answers(&c, "/healthz", "HTTP/1.1 200", "{\"ok\":true}");
    answers(&c, "/metrics", "HTTP/1.1 200", "\ncrcr_role_healthy{role=\"follower\"} 1\n");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 0);
    buf_clear(&c.text);
}

static void a_watched_thread_that_is_silent_is_503_and_named(void **state)
{
    (void)state;
    struct child c;
    behave.watches = behave.one_hangs = true;
    behave.silent_ms = 26000;
    child_start(&c, good, NULL, NULL);
    child_read(&c, "\"role\":\"l1\"");
    answers(&c, "/healthz", "HTTP/1.1 503",
            "{\"ok\":false,\"reasons\":[\"follower: no sign of life for ");
    answers(&c, "/metrics", "HTTP/1.1 200", "\ncrcr_role_healthy{role=\"follower\"} 0\n");
    answers(&c, "/metrics", "HTTP/1.1 200", "\ncrcr_role_healthy{role=\"second\"} 1\n");
    kill(c.pid, SIGTERM);
    child_read(&c, "\"role_stopped\",\"role\":\"router\"");
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 1);
    assert_true(says(&c, "l1 (") && says(&c, ", follower ("));
    buf_clear(&c.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(help_and_version_exit_0, reset),
        cmocka_unit_test_setup(bad_usage_and_configuration_exit_2, reset),
        cmocka_unit_test_setup(check_config_prints_what_is_in_force, reset),
        cmocka_unit_test_setup(it_leaves_no_core_and_nobody_may_attach, reset),
        cmocka_unit_test_setup(start_that_fails_exits_2_or_1, reset),
        cmocka_unit_test_setup(sigterm_and_sigint_drain_and_exit_0, reset),
        cmocka_unit_test_setup(only_the_chosen_roles_run, reset),
        cmocka_unit_test_setup(a_failed_role_takes_the_daemon_with_it, reset),
        cmocka_unit_test_setup(a_role_that_ends_by_itself_has_failed, reset),
        cmocka_unit_test_setup(a_second_signal_ends_a_drain_that_hangs, reset),
        cmocka_unit_test_setup(the_admin_port_tells_health_readiness_and_metrics, reset),
        cmocka_unit_test_setup(a_daemon_takes_all_descriptors_that_it_may_have, reset),
        cmocka_unit_test_setup(not_ready_and_unhealthy_are_503_with_the_reason, reset),
        cmocka_unit_test_setup(a_watched_thread_counts_as_a_role_does, reset),
        cmocka_unit_test_setup(a_watched_thread_that_is_silent_is_503_and_named, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
