/* Against a real redis-server of its own: started here on a free port, killed by its pid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis_server_fixture.h"

#define ARG(text) STR_LIT(text)

static struct redis *client_new(const struct fixture *f, const char *login)
{
    struct redis *r = NULL;
    struct why why = { "" };
    struct redis_options o = { .endpoint = f->endpoint, .login = login };
    assert_int_equal(redis_new(&r, &o, &why), OK);
    return r;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->dir, "/tmp/crcr-redis-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    free_port(f->port);
    snprintf(f->endpoint, sizeof(f->endpoint), "127.0.0.1:%s", f->port);
    server_start(f, "");
    f->r = client_new(f, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    redis_free(f->r);
    server_kill(f);
    rmdir(f->dir);
    free(f);
    return 0;
}

/* ---- calls for brevity -------------------------------------------------------------- */

static const struct redis_value *call(struct redis *r, size_t argc, const struct str *argv)
{
    const struct redis_value *v = NULL;
    struct why why = { "" };
    enum err err = redis_call(r, &v, argc, argv, &why);
    if (err)
        fail_msg("%s: %s", err_name(err), why.text);
    return v;
}
#define CALL(r, ...) call(r, REDIS_ARGS(__VA_ARGS__))

static enum err attempt(struct redis *r, struct why *why)
{
    const struct redis_value *v = NULL;
    return redis_call(r, &v, REDIS_ARGS(ARG("SET"), ARG("k"), ARG("v")), why);
}

static void queue(struct redis *r, size_t argc, const struct str *argv)
{
    struct why why;
    assert_int_equal(redis_queue(r, argc, argv, &why), OK);
}
#define QUEUE(r, ...) queue(r, REDIS_ARGS(__VA_ARGS__))

static const struct redis_value *collect(struct redis *r)
{
    const struct redis_value *v = NULL;
    struct why why = { "" };
    enum err err = redis_collect(r, &v, &why);
    if (err)
        fail_msg("%s: %s", err_name(err), why.text);
    return v;
}

static void assert_text(const struct redis_value *v, const char *text)
{
    assert_int_equal(v->type, REDIS_STR);
    assert_int_equal(v->text.len, strlen(text));
    assert_memory_equal(v->text.ptr, text, v->text.len);
}

/* ---- commands ----------------------------------------------------------------------- */

static void the_prefix_stands_before_each_key_and_nothing_else(void **state)
{
    struct redis_script script = { "return { KEYS[1], KEYS[2], ARGV[1] }", "" };
    struct fixture *f = *state;
    struct redis_options o = { .endpoint = f->endpoint, .key_prefix = "a:" };
    const struct redis_value *v;
    struct redis *r;
    assert_int_equal(redis_new(&r, &o, NULL), OK);
    CALL(r, ARG("SET"), ARG("k"), ARG("v"));
    assert_text(CALL(r, ARG("GET"), ARG("k")), "v");
    assert_text(CALL(f->r, ARG("GET"), ARG("a:k")), "v");
    assert_int_equal(CALL(f->r, ARG("GET"), ARG("k"))->type, REDIS_NIL);
    for (int i = 0; i < 3; i++) { /* EVAL, EVALSHA, NOSCRIPT */
        assert_false(
            redis_call_script(r, &script, 2, REDIS_ARGS(ARG("k"), ARG(""), ARG("arg")), &v, NULL));
        assert_text(&v->items[0], "a:k");
        assert_text(&v->items[2], "arg");
        CALL(f->r, ARG("SCRIPT"), i == 1 ? ARG("FLUSH") : ARG("HELP"));
    }
    redis_free(r);
}

static void every_type_of_reply_is_distinguished(void **state)
{
    struct fixture *f = *state;
    assert_text(CALL(f->r, ARG("SET"), ARG("k"), ARG("a\0b\r\n")), "OK");
    const struct redis_value *v = CALL(f->r, ARG("GET"), ARG("k"));
    assert_int_equal(v->text.len, 5);
    assert_memory_equal(v->text.ptr, "a\0b\r\n", 5);
    assert_int_equal(CALL(f->r, ARG("GET"), ARG("none"))->type, REDIS_NIL);
    v = CALL(f->r, ARG("INCRBY"), ARG("n"), ARG("-9000000000"));
    assert_int_equal(v->type, REDIS_INT);
    assert_true(v->integer == -9000000000);
    v = CALL(f->r, ARG("EVAL"), ARG("return {1,'two',{'a',{}},false,redis.error_reply('NO x')}"),
             ARG("0"));
    assert_int_equal(v->type, REDIS_ARRAY);
    assert_int_equal(v->n, 5);
    assert_int_equal(v->items[0].integer, 1);
    assert_text(&v->items[1], "two");
    assert_int_equal(v->items[2].n, 2);
    assert_text(&v->items[2].items[0], "a");
    assert_int_equal(v->items[2].items[1].type, REDIS_ARRAY);
    assert_int_equal(v->items[2].items[1].n, 0);
    assert_int_equal(v->items[3].type, REDIS_NIL);
    assert_int_equal(v->items[4].type, REDIS_ERROR);
}

static void pipeline_gives_replies_in_order_also_past_an_error(void **state)
{
    struct fixture *f = *state;
    enum { N = 5000 };
    const struct redis_value *v;
    struct why why;
    char text[16];
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%d", i);
        QUEUE(f->r, ARG("ECHO"), str_of(text));
    }
    QUEUE(f->r, ARG("NOSUCH"));
    QUEUE(f->r, ARG("ECHO"), ARG("after"));
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%d", i);
        assert_text(collect(f->r), text);
    }
    assert_int_equal(redis_collect(f->r, &v, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "unknown command"));
    assert_text(collect(f->r), "after");
    assert_int_equal(redis_collect(f->r, &v, &why), ERR_REFUSE);
}

static void call_amid_a_pipeline_is_refused(void **state)
{
    struct fixture *f = *state;
    struct why why;
    QUEUE(f->r, ARG("PING"));
    assert_int_equal(attempt(f->r, &why), ERR_REFUSE);
    assert_text(collect(f->r), "PONG");
    assert_int_equal(attempt(f->r, &why), OK);
}

/* ---- scripts ------------------------------------------------------------------------ */

static void queue_script(struct redis *r, struct redis_script *s, const char *key, const char *arg)
{
    struct why why;
    assert_int_equal(redis_queue_script(r, s, 1, REDIS_ARGS(str_of(key), str_of(arg)), &why), OK);
}

static void script_is_loaded_once_and_called_by_sha(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return {KEYS[1], ARGV[1]}" };
    const struct redis_value *v = NULL;
    struct why why;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(redis_call_script(f->r, &s, 1, REDIS_ARGS(ARG("k"), ARG("x")), &v, &why),
                         OK);
        assert_text(&v->items[0], "k");
        assert_text(&v->items[1], "x");
    }
    assert_int_equal(strlen(s.sha), 40);
    v = CALL(f->r, ARG("SCRIPT"), ARG("EXISTS"), str_of(s.sha));
    assert_int_equal(v->items[0].integer, 1);
}

static void missing_script_is_mended_inside_a_pipeline_in_its_place(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return redis.call('INCR', KEYS[1]) .. ARGV[1]" };
    queue_script(f->r, &s, "n", "a");
    assert_text(collect(f->r), "1a");
    CALL(f->r, ARG("SCRIPT"), ARG("FLUSH"));

    QUEUE(f->r, ARG("ECHO"), ARG("first"));
    queue_script(f->r, &s, "n", "b");
    QUEUE(f->r, ARG("ECHO"), ARG("middle"));
    queue_script(f->r, &s, "m", "c");
    QUEUE(f->r, ARG("ECHO"), ARG("last"));
    assert_text(collect(f->r), "first");
    assert_text(collect(f->r), "2b"); /* exactly one more call */
    QUEUE(f->r, ARG("ECHO"), ARG("queued while mending"));
    assert_text(collect(f->r), "middle");
    assert_text(collect(f->r), "1c");
    assert_text(collect(f->r), "last");
    assert_text(collect(f->r), "queued while mending");
}

static void error_inside_a_script_is_reported(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return redis.call('INCR', KEYS[1], 'too', 'many')" };
    const struct redis_value *v;
    struct why why;
    for (int i = 0; i < 2; i++) /* by source, then by SHA */
        assert_int_equal(redis_call_script(f->r, &s, 1, REDIS_ARGS(ARG("k")), &v, &why),
                         ERR_REFUSE);
    assert_true(redis_is_up(f->r));
}

/* ---- what a server says when it cannot ---------------------------------------------- */

static void full_memory_is_retry(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return redis.call('SET', KEYS[1], ARGV[1])" };
    const struct redis_value *v;
    struct why why;
    CALL(f->r, ARG("CONFIG"), ARG("SET"), ARG("maxmemory"), ARG("1"));
    assert_int_equal(attempt(f->r, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "OOM"));
    assert_false(redis_is_up(f->r));
    assert_int_equal(redis_call_script(f->r, &s, 1, REDIS_ARGS(ARG("k"), ARG("v")), &v, &why),
                     ERR_RETRY);
    CALL(f->r, ARG("CONFIG"), ARG("SET"), ARG("maxmemory"), ARG("0"));
    assert_int_equal(attempt(f->r, &why), OK);
    assert_true(redis_is_up(f->r));
}

static void replica_is_retry_and_left(void **state)
{
    struct fixture *f = *state;
    struct why why;
    int64_t id = CALL(f->r, ARG("CLIENT"), ARG("ID"))->integer;
    CALL(f->r, ARG("REPLICAOF"), ARG("127.0.0.1"), ARG("1"));
    assert_int_equal(attempt(f->r, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "READONLY"));
    assert_true(CALL(f->r, ARG("CLIENT"), ARG("ID"))->integer > id); /* the name may now lead on */
    CALL(f->r, ARG("REPLICAOF"), ARG("NO"), ARG("ONE"));
    assert_int_equal(attempt(f->r, &why), OK);
}

static void loading_is_retry(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return redis.error_reply(ARGV[1])" };
    static const struct {
        const char *text;
        enum err err;
    } cases[] = {
        { "LOADING Redis is loading the dataset in memory", ERR_RETRY },
        { "CLUSTERDOWN Hash slot not served", ERR_RETRY },
        { "MASTERDOWN Link with MASTER is down", ERR_RETRY },
        { "BUSY Redis is busy running a script", ERR_RETRY },
        { "NOREPLICAS Not enough good replicas to write.", ERR_RETRY },
        { "MISCONF Errors writing to the AOF file", ERR_RETRY },
        { "WRONGTYPE Operation against a key", ERR_REFUSE },
        { "BUSYKEY Target key name already exists.", ERR_REFUSE },
        { "ERR LOADING is not the first word", ERR_REFUSE },
    };
    const struct redis_value *v;
    struct why why;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            redis_call_script(f->r, &s, 0, REDIS_ARGS(str_of(cases[i].text)), &v, &why),
            cases[i].err);
        assert_non_null(strstr(why.text, cases[i].text));
    }
}

/* ---- a server that goes and comes back ---------------------------------------------- */

static void work_again(struct fixture *f)
{
    struct why why = { "" };
    int64_t until_ms = clock_mono_ms() + LIMIT_MS;
    while (attempt(f->r, &why) && clock_mono_ms() < until_ms)
        usleep(10000);
    assert_int_equal(attempt(f->r, &why), OK);
    assert_true(redis_is_up(f->r));
}

static void killed_server_fails_fast_and_is_found_again(void **state)
{
    struct fixture *f = *state;
    struct why why;
    assert_int_equal(attempt(f->r, &why), OK);
    server_kill(f);
    int64_t began_ms = clock_mono_ms();
    for (int i = 0; i < 10000; i++)
        assert_int_equal(attempt(f->r, &why),
                         ERR_RETRY); /* seen to be closed: certainly not sent */
    assert_true(clock_mono_ms() - began_ms < LIMIT_MS);
    assert_false(redis_is_up(f->r));
    assert_non_null(strstr(why.text, f->port));
    server_start(f, "");
    work_again(f);
}

static void what_was_sent_to_a_dying_server_is_unknown_for_the_whole_pipeline(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return 1" };
    const struct redis_value *v;
    struct why why;
    assert_int_equal(attempt(f->r, &why), OK);
    QUEUE(f->r, ARG("INCR"), ARG("n"));
    queue_script(f->r, &s, "k", "v");
    QUEUE(f->r, ARG("DEBUG"), ARG("SLEEP"), ARG("0"));
    server_kill(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(redis_collect(f->r, &v, &why), ERR_UNKNOWN);
    server_start(f, "");
    work_again(f);
    queue_script(f->r, &s, "k", "v");
    assert_int_equal(collect(f->r)->integer, 1);
}

static void scripts_that_a_dying_server_lacked_are_unknown(void **state)
{
    struct fixture *f = *state;
    struct redis_script s = { .source = "return redis.call('INCR', KEYS[1])" };
    const struct redis_value *v;
    struct why why;
    queue_script(f->r, &s, "n", "");
    assert_int_equal(collect(f->r)->integer, 1);
    CALL(f->r, ARG("SCRIPT"), ARG("FLUSH"));
    QUEUE(f->r, ARG("ECHO"), ARG("first"));
    queue_script(f->r, &s, "n", "");
    queue_script(f->r, &s, "n", "");
    assert_text(collect(f->r), "first");
    server_kill(f);
    assert_int_equal(redis_collect(f->r, &v, &why), ERR_UNKNOWN);
    assert_int_equal(redis_collect(f->r, &v, &why), ERR_UNKNOWN);
    server_start(f, "");
    work_again(f);
    queue_script(f->r, &s, "n", "");
    assert_int_equal(collect(f->r)->integer, 1);
}

static void silent_server_is_given_up_after_the_time_out(void **state)
{
    struct fixture *f = *state;
    struct why why;
    assert_int_equal(attempt(f->r, &why), OK);
    kill(f->server, SIGSTOP);
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(attempt(f->r, &why), ERR_UNKNOWN);
    assert_in_range(clock_mono_ms() - began_ms, 900, LIMIT_MS / 2);
    kill(f->server, SIGCONT);
    work_again(f);
}

static void password_is_sent_and_a_wrong_one_reported(void **state)
{
    struct fixture *f = *state;
    struct why why = { "" };
    server_kill(f);
    server_start(f, "secret");
    assert_int_equal(attempt(f->r, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "NOAUTH"));
    static const char *const good[] = { "secret", "default:secret", ":secret" };
    for (size_t i = 0; i < 3; i++) {
        struct redis *r = client_new(f, good[i]);
        assert_int_equal(attempt(r, &why), OK);
        redis_free(r);
    }
    struct redis *r = client_new(f, "default:wrong");
    assert_int_equal(attempt(r, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "refused the login"));
    assert_null(strstr(why.text, "wrong:"));
    redis_free(r);
}

/* ---- TLS ---------------------------------------------------------------------------- */

#ifdef CRCR_HAVE_HIREDIS_SSL
/* A server whose certificate, its own authority, is for these names. */
static void tls_server_start(struct fixture *f, const char *names)
{
    char command[512];
    server_kill(f);
    snprintf(command, sizeof(command),
             "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=redis -addext "
             "subjectAltName=%s -keyout %s/key -out %s/ca.pem 2>/dev/null && cat %s/key %s/ca.pem "
             ">%s/server.pem",
             names, f->dir, f->dir, f->dir, f->dir, f->dir);
    assert_int_equal(system(command), 0);
    free_port(f->tls_port);
    server_start(f, "");
}

static enum err tls_attempt(const struct fixture *f, const char *host, bool system_ca,
                            struct why *why)
{
    char endpoint[64], ca_file[128];
    struct redis *r;
    snprintf(endpoint, sizeof(endpoint), "%s:%s", host, f->tls_port);
    snprintf(ca_file, sizeof(ca_file), "%s/ca.pem", f->dir);
    const struct redis_options o = { .endpoint = endpoint,
                                     .tls = true,
                                     .ca_file = system_ca ? NULL : ca_file,
                                     .timeout_ms = LIMIT_MS };
    assert_int_equal(redis_new(&r, &o, why), OK);
    enum err err = attempt(r, why);
    redis_free(r);
    return err;
}

static void certificate_must_be_for_the_host_and_of_the_authority(void **state)
{
    struct fixture *f = *state;
    struct why why;
    tls_server_start(f, "DNS:localhost");
    assert_int_equal(tls_attempt(f, "localhost", false, &why), OK);
    assert_int_equal(tls_attempt(f, "127.0.0.1", false, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "redis TLS: certificate verify failed: IP address mismatch"));
    assert_int_equal(tls_attempt(f, "localhost", true, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "self-signed"));
    tls_server_start(f, "DNS:redis.example.org,IP:127.0.0.1");
    assert_int_equal(tls_attempt(f, "127.0.0.1", false, &why), OK);
    assert_int_equal(tls_attempt(f, "localhost", false, &why), ERR_RETRY);
    assert_non_null(strstr(why.text, "ostname mismatch"));
    char command[128];
    snprintf(command, sizeof(command), "rm %s/*", f->dir);
    assert_int_equal(system(command), 0);
}
#endif

/* ---- without a server --------------------------------------------------------------- */

static void options_are_checked(void **state)
{
    struct redis *r = NULL;
    struct why why;
    struct redis_options o = { .endpoint = "localhost" };
    (void)state;
    assert_int_equal(redis_new(&r, &o, &why), ERR_REFUSE);
    o.endpoint = "::1:6379";
    assert_int_equal(redis_new(&r, &o, &why), ERR_REFUSE);
    o.endpoint = "[::1]:6379";
    o.tls = true;
    o.ca_file = "/nowhere/ca.pem";
    assert_int_equal(redis_new(&r, &o, &why), ERR_STOP);
#ifdef CRCR_HAVE_HIREDIS_SSL
    assert_non_null(strstr(why.text, "redis TLS: "));
#else
    assert_non_null(strstr(why.text, "hiredis"));
#endif
    assert_null(r);
    redis_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_prefix_stands_before_each_key_and_nothing_else),
        TEST(every_type_of_reply_is_distinguished),
        TEST(pipeline_gives_replies_in_order_also_past_an_error),
        TEST(call_amid_a_pipeline_is_refused),
        TEST(script_is_loaded_once_and_called_by_sha),
        TEST(missing_script_is_mended_inside_a_pipeline_in_its_place),
        TEST(error_inside_a_script_is_reported),
        TEST(full_memory_is_retry),
        TEST(replica_is_retry_and_left),
        TEST(loading_is_retry),
        TEST(killed_server_fails_fast_and_is_found_again),
        TEST(what_was_sent_to_a_dying_server_is_unknown_for_the_whole_pipeline),
        TEST(scripts_that_a_dying_server_lacked_are_unknown),
        TEST(silent_server_is_given_up_after_the_time_out),
        TEST(password_is_sent_and_a_wrong_one_reported),
#ifdef CRCR_HAVE_HIREDIS_SSL
        TEST(certificate_must_be_for_the_host_and_of_the_authority),
#endif
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
