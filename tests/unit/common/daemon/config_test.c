#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/daemon/config.h"
#include "tests/unit/support/freed.h"

enum { VARIABLES_MAX = 16 };

/* What ingest and the reporter cannot start without, and then those given, up to NULL. */
struct environment {
    char *at[VARIABLES_MAX];
    size_t n;
};

static void environment_init(struct environment *e)
{
    *e = (struct environment){ .at = { "KAFKA_BROKERS=k:9092", "REDIS_ENDPOINT=r:6379",
                                       "GITHUB_APP_SECRET=hush", "GITHUB_APP_ID=1",
                                       "GITHUB_APP_PRIVATE_KEY=x" },
                               .n = 5 };
}

static struct config *loaded_by(enum daemon daemon, const char *variable)
{
    struct environment e;
    struct buf CLEANUP(buf_clear) faults;
    struct config *c = NULL;
    environment_init(&e);
    e.at[e.n++] = (char *)variable;
    buf_init(&faults, 1 << 16);
    if (config_load(&c, daemon, e.at, &faults))
        fail_msg("%s: %s", variable, buf_str(&faults).ptr);
    assert_int_equal(faults.len, 0);
    return c;
}

static struct config *loaded(const char *variable)
{
    return loaded_by(DAEMON_INGEST, variable);
}

/* The variable is refused with one line that says each of these (NULL-terminated). */
static void refused_by(enum daemon daemon, const char *variable, const char *const *says)
{
    struct environment e;
    struct buf CLEANUP(buf_clear) faults;
    struct config *c = NULL;
    environment_init(&e);
    e.at[e.n++] = (char *)variable;
    buf_init(&faults, 1 << 16);
    assert_int_equal(config_load(&c, daemon, e.at, &faults), ERR_STOP);
    assert_null(c);
    const char *text = buf_str(&faults).ptr;
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    for (; *says; says++)
        if (!strstr(text, *says))
            fail_msg("\"%s\" does not say \"%s\"", text, *says);
}

static void refused(const char *variable, const char *const *says)
{
    refused_by(DAEMON_INGEST, variable, says);
}

#define SAYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void fallbacks_hold_when_nothing_is_set(void **state)
{
    (void)state;
    struct config *c = loaded(NULL);
    assert_string_equal(config_text(c, "UPSTREAM_REPO"), "pytorch/pytorch");
    assert_string_equal(config_text(c, "CRCR_LISTEN"), "0.0.0.0:8080");
    assert_int_equal(config_number(c, "RATE_LIMIT_PER_MIN"), 100);
    assert_int_equal(config_number(c, "CRCR_MAX_INFLIGHT_BYTES"), 256 << 20);
    assert_false(config_bool(c, "CRCR_REDIS_TLS"));
    assert_null(config_text(c, "REDIS_LOGIN"));
    config_free(c);
}

static void redis_has_an_authority_of_its_own_or_that_of_all(void **state)
{
    (void)state;
    struct config *c = loaded(NULL);
    assert_null(config_redis(c, "crcr:").ca_file);
    assert_false(config_redis(c, "crcr:").tls);
    config_free(c);
    c = loaded("CRCR_CA_FILE=/dev/null");
    assert_string_equal(config_redis(c, "crcr:").ca_file, "/dev/null");
    config_free(c);
    c = loaded("CRCR_REDIS_CA_FILE=/dev/zero");
    assert_string_equal(config_redis(c, "crcr:").ca_file, "/dev/zero");
    assert_null(config_text(c, "CRCR_CA_FILE"));
    config_free(c);
}

static void an_empty_value_counts_as_unset(void **state)
{
    (void)state;
    struct config *c = loaded("CRCR_LISTEN=");
    assert_string_equal(config_text(c, "CRCR_LISTEN"), "0.0.0.0:8080");
    config_free(c);
}

static void every_missing_name_is_said_at_once(void **state)
{
    (void)state;
    char *none[] = { "CRCR_LOG_LEVEL=loud", NULL };
    struct buf CLEANUP(buf_clear) faults;
    struct config *c = NULL;
    buf_init(&faults, 1 << 16);
    assert_int_equal(config_load(&c, DAEMON_INGEST, none, &faults), ERR_STOP);
    static const char *const names[] = { "KAFKA_BROKERS: missing", "REDIS_ENDPOINT: missing",
                                         "GITHUB_APP_SECRET: missing", "CRCR_LOG_LEVEL=\"loud\"" };
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(buf_str(&faults).ptr, names[i]));
}

static void bad_values_are_refused_with_what_is_accepted(void **state)
{
    (void)state;
    refused("RATE_LIMIT_PER_MIN=0", SAYS("RATE_LIMIT_PER_MIN=\"0\"", "from 1 to 1000000"));
    refused("RATE_LIMIT_PER_MIN=ten", SAYS("\"ten\"", "whole number"));
    refused("RATE_LIMIT_PER_MIN=99999999999999999999", SAYS("whole number"));
    refused("CRCR_MAX_INFLIGHT_BYTES=10MB", SAYS("\"10MB\"", "KiB, MiB, GiB", "1MiB to 1024GiB"));
    refused("CRCR_MAX_INFLIGHT_BYTES=9223372036854775807GiB", SAYS("KiB"));
    refused("CRCR_REDIS_TLS=yes", SAYS("0, 1, true or false"));
    refused("CRCR_LOG_FORMAT=xml", SAYS("json or text"));
    refused("CRCR_LISTEN=8080", SAYS("host:port"));
    refused("CRCR_LISTEN=0.0.0.0:99999", SAYS("host:port"));
    refused("CRCR_LISTEN=[]:80", SAYS("host:port"));
    refused("UPSTREAM_REPO=pytorch", SAYS("owner/repo"));
    refused("UPSTREAM_REPO=a/b/c", SAYS("owner/repo"));
    refused("UPSTREAM_REPO=pytorch/pytorch.git", SAYS(".git behind it"));
    refused("UPSTREAM_REPO=https://github.com/pytorch/pytorch",
            SAYS("without https://github.com/"));
    refused("CRCR_TOPIC_PREFIX=a b", SAYS("letters"));
    refused("CRCR_CA_FILE=/nowhere", SAYS("/nowhere", "readable file"));
}

static void units_are_understood(void **state)
{
    (void)state;
    struct config *c = loaded("CRCR_MAX_INFLIGHT_BYTES=2GiB");
    assert_true(config_number(c, "CRCR_MAX_INFLIGHT_BYTES") == (int64_t)2 << 30);
    config_free(c);
    char *environment[] = { "KAFKA_BROKERS=k:1",        "REDIS_ENDPOINT=r:1",
                            "GITHUB_APP_ID=1",          "GITHUB_APP_PRIVATE_KEY=x",
                            "ALLOWLIST_URL=/a.yml",     "CRCR_MAX_EVENT_AGE=36h",
                            "ALLOWLIST_TTL_SECONDS=60", NULL };
    struct buf CLEANUP(buf_clear) faults;
    buf_init(&faults, 1 << 16);
    assert_int_equal(config_load(&c, DAEMON_DISPATCHER, environment, &faults), OK);
    assert_int_equal(config_number(c, "CRCR_MAX_EVENT_AGE"), 36 * 3600);
    assert_int_equal(config_number(c, "ALLOWLIST_TTL_SECONDS"), 60);
    config_free(c);
}

static void an_unknown_name_is_refused(void **state)
{
    (void)state;
    refused("CRCR_LSITEN=:1", SAYS("CRCR_LSITEN: unknown name; --help lists those"));
    refused("CRCR_LISTEN_PORT=8080", SAYS("unknown name"));
    config_free(loaded("HOME=/root"));
    config_free(loaded("GITHUB_TOKEN=x")); /* only our prefix is ours to refuse */
}

static void names_that_kubernetes_sets_are_passed_over(void **state)
{
    (void)state;
    static const char *const names[] = {
        "CRCR_INGEST_SERVICE_HOST=10.0.0.1",         "CRCR_INGEST_SERVICE_PORT=80",
        "CRCR_INGEST_SERVICE_PORT_HTTP=80",          "CRCR_INGEST_PORT=tcp://10.0.0.1:80",
        "CRCR_INGEST_PORT_80_TCP=tcp://10.0.0.1:80", "CRCR_INGEST_PORT_80_TCP_PROTO=tcp",
        "CRCR_INGEST_PORT_80_TCP_ADDR=10.0.0.1",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        config_free(loaded(names[i]));
}

static void a_name_of_another_daemon_is_no_fault(void **state)
{
    (void)state;
    config_free(loaded("CRCR_MAX_EVENT_AGE=never")); /* the dispatcher will say so */
}

static void plain_http_is_for_loopback_only(void **state)
{
    (void)state;
    static const char *const good[] = {
        "HUD_API_URL=https://i/hud",
        "HUD_API_URL=http://127.0.0.1:80/hud",
        "HUD_API_URL=http://localhost/hud",
        "HUD_API_URL=http://[::1]:8080/hud",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        config_free(loaded_by(DAEMON_REPORTER, good[i]));
    static const char *const bad[] = {
        "HUD_API_URL=http://example.org/hud",
        "HUD_API_URL=http://10.0.0.1/hud",
        "HUD_API_URL=http://127.evil.org/hud",
        "HUD_API_URL=http://127.0.0.1.evil.org/hud",
        "HUD_API_URL=http://localhost@evil.org/hud",
        "HUD_API_URL=http://[::2]/hud",
        "HUD_API_URL=ftp://i/hud",
        "HUD_API_URL=https://",
        "HUD_API_URL=https://h:99999/hud",
        "HUD_API_URL=https://h:x/hud",
        "HUD_API_URL=i/hud",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused_by(DAEMON_REPORTER, bad[i], SAYS("HUD_API_URL: ", "accepted: an https:// URL"));
    refused_by(DAEMON_REPORTER, "HUD_API_URL=https://user:word@h/", SAYS("user name or password"));
}

static void allow_http_opens_every_url(void **state)
{
    (void)state;
    char *environment[] = { "CRCR_ALLOW_HTTP=1",
                            "CRCR_GITHUB_API_URL=http://github.test:80/api//",
                            "KAFKA_BROKERS=k:1",
                            "REDIS_ENDPOINT=r:1",
                            "GITHUB_APP_ID=1",
                            "GITHUB_APP_PRIVATE_KEY=x",
                            NULL };
    struct buf CLEANUP(buf_clear) faults;
    struct config *c;
    buf_init(&faults, 1 << 16);
    assert_int_equal(config_load(&c, DAEMON_REPORTER, environment, &faults), OK);
    assert_string_equal(config_text(c, "CRCR_GITHUB_API_URL"), "http://github.test:80/api");
    config_free(c);
    environment[0] = "CRCR_ALLOW_HTTP=0";
    assert_int_equal(config_load(&c, DAEMON_REPORTER, environment, &faults), ERR_STOP);
}

static void kafka_properties_are_mapped(void **state)
{
    (void)state;
    struct config *c = loaded("CRCR_KAFKA_SECURITY_PROTOCOL=SASL_SSL");
    struct kafka_options k = config_kafka(c, "crcr-ingest");
    assert_string_equal(k.brokers, "k:9092");
    assert_string_equal(k.client_id, "crcr-ingest");
    assert_int_equal(k.n_properties, 1);
    assert_string_equal(k.properties[0].name, "security.protocol");
    assert_string_equal(k.properties[0].value, "SASL_SSL");
    config_free(c);
}

static void kafka_properties_that_the_rules_fix_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "ACKS",
        "REQUEST_REQUIRED_ACKS",
        "ENABLE_IDEMPOTENCE",
        "ENABLE_AUTO_COMMIT",
        "ENABLE_AUTO_OFFSET_STORE",
        "GROUP_ID",
        "GROUP_INSTANCE_ID",
        "GROUP_PROTOCOL",
        "PARTITIONER",
        "BATCH_SIZE",
        "AUTO_OFFSET_RESET",
        "MESSAGE_TIMEOUT_MS",
        "DELIVERY_TIMEOUT_MS",
        "PLUGIN_LIBRARY_PATHS",
        "STATISTICS_INTERVAL_MS",
        "BOOTSTRAP_SERVERS",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char variable[80];
        snprintf(variable, sizeof(variable), "CRCR_KAFKA_%s=x", names[i]);
        refused(variable, SAYS("CRCR_KAFKA_", "is fixed: "));
    }
    refused("CRCR_KAFKA_=x", SAYS("librdkafka property"));
}

static void a_session_too_short_to_publish_in_is_refused(void **state)
{
    (void)state;
    refused("CRCR_KAFKA_SESSION_TIMEOUT_MS=5999",
            SAYS("CRCR_KAFKA_SESSION_TIMEOUT_MS", "at least 6000, not 5999"));
    struct config *c = loaded("CRCR_KAFKA_SESSION_TIMEOUT_MS=45000");
    assert_string_equal(config_kafka(c, "x").properties[0].value, "45000");
    config_free(c);
}

static void a_file_gives_the_value_without_its_newline(void **state)
{
    (void)state;
    char path[] = "/tmp/config_test.XXXXXX", variable[80];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "a:b\n\n", 5), 5);
    close(fd);
    snprintf(variable, sizeof(variable), "REDIS_LOGIN_FILE=%s", path);
    struct config *c = loaded(variable);
    assert_string_equal(config_text(c, "REDIS_LOGIN"), "a:b\n");
    config_free(c);
    snprintf(variable, sizeof(variable), "CRCR_KAFKA_SASL_PASSWORD_FILE=%s", path);
    c = loaded(variable);
    assert_string_equal(config_kafka(c, "x").properties[0].name, "sasl.password");
    assert_string_equal(config_kafka(c, "x").properties[0].value, "a:b\n");
    config_free(c);
    snprintf(variable, sizeof(variable), "KAFKA_BROKERS_FILE=%s", path);
    refused(variable, SAYS("KAFKA_BROKERS: given twice"));
    unlink(path);
    refused(variable, SAYS("KAFKA_BROKERS_FILE=", "No such file", "holds KAFKA_BROKERS"));
}

static void secrets_are_never_printed(void **state)
{
    (void)state;
    struct config *c = loaded("CRCR_KAFKA_SASL_PASSWORD=hush2");
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 16);
    config_print(c, &text);
    assert_non_null(strstr(buf_str(&text).ptr, "GITHUB_APP_SECRET=(set)\n"));
    assert_non_null(strstr(buf_str(&text).ptr, "kafka sasl.password=(set)\n"));
    assert_non_null(strstr(buf_str(&text).ptr, "REDIS_LOGIN=\n"));
    assert_non_null(strstr(buf_str(&text).ptr, "KAFKA_BROKERS=k:9092\n"));
    assert_null(strstr(buf_str(&text).ptr, "hush"));
    config_free(c);
}

static void urls_are_printed_without_login_and_query(void **state)
{
    (void)state;
    struct config *c = loaded("CRCR_OIDC_ISSUERS=https://a=https://b/jwks?t=hush,https://c=https://"
                              "d:1/e?hush=https");
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 16);
    config_print(c, &text);
    assert_non_null(
        strstr(buf_str(&text).ptr,
               "\nCRCR_OIDC_ISSUERS=https://a=https://b/jwks=…,https://c=https://d:1/e=…\n"));
    assert_null(strstr(buf_str(&text).ptr, "hush"));
    config_free(c);
    char *environment[] = { "KAFKA_BROKERS=k:1",
                            "REDIS_ENDPOINT=r:1",
                            "GITHUB_APP_ID=1",
                            "GITHUB_APP_PRIVATE_KEY=x",
                            "ALLOWLIST_URL=https://h/a/?key=hush/",
                            NULL };
    struct buf CLEANUP(buf_clear) faults;
    buf_init(&faults, 1 << 16);
    assert_int_equal(config_load(&c, DAEMON_DISPATCHER, environment, &faults), OK);
    assert_string_equal(config_text(c, "ALLOWLIST_URL"), "https://h/a/?key=hush/");
    buf_reset(&text);
    config_print(c, &text);
    assert_non_null(strstr(buf_str(&text).ptr, "\nALLOWLIST_URL=https://h/a/\n"));
    config_free(c);
}

static void a_fault_is_reported_without_what_may_be_a_secret(void **state)
{
    (void)state;
    static char *wrong[] = {
        "HUD_API_URL=https://user:hush@hud.example/",
        "HUD_API_URL=https://user:hu/sh@hud.example",
        "HUD_API_URL=http://hud.example/?key=hush",
        "HUD_API_URL=hud.example?key=hush",
        "REDIS_ENDPOINT=redis://:hush@redis:6379",
        "REDIS_ENDPOINT=user:hush@redis:6379",
        "HUD_BOT_KEY_FILE=hush",
        "CRCR_GITHUB_API_URL=ftp://h?key=hush",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct buf CLEANUP(buf_clear) faults;
        struct config *c = NULL;
        char *environment[] = { wrong[i], NULL };
        buf_init(&faults, 1 << 16);
        assert_int_equal(config_load(&c, DAEMON_REPORTER, environment, &faults), ERR_STOP);
        if (strstr(buf_str(&faults).ptr, "hu/sh") || strstr(buf_str(&faults).ptr, "hush"))
            fail_msg("%s", buf_str(&faults).ptr);
        struct str name = { wrong[i], strcspn(wrong[i], "=") };
        assert_true(str_find_str(buf_str(&faults), name) >= 0);
    }
}

static void secrets_are_wiped(void **state)
{
    (void)state;
    char path[] = "/tmp/config_test.XXXXXX", file[80];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "hush5", 5), 5);
    close(fd);
    snprintf(file, sizeof(file), "GITHUB_APP_SECRET_FILE=%s", path);
    char *environment[] = { "KAFKA_BROKERS=k:1",
                            "REDIS_ENDPOINT=r:1",
                            "REDIS_LOGIN=hush5",
                            "CRCR_KAFKA_SASL_PASSWORD=hush5",
                            file,
                            NULL };
    struct buf CLEANUP(buf_clear) faults;
    struct config *c = NULL;
    buf_init(&faults, 1 << 16);
    freed_watch("hush5");
    assert_int_equal(config_load(&c, DAEMON_INGEST, environment, &faults), OK);
    assert_string_equal(config_text(c, "GITHUB_APP_SECRET"), "hush5");
    config_free(c);
    assert_false(freed_has_secret());
    unlink(path);
#ifdef CRCR_SANITIZED
    assert_true(freed_blocks > 0);
#endif
}

static void every_property_is_whole_and_its_fallback_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_n_properties; i++) {
        const struct property *p = &config_properties[i];
        assert_non_null(p->help);
        assert_int_equal(p->help[strlen(p->help) - 1], '.');
        assert_true(p->daemons != 0 && (p->required & ~p->daemons) == 0);
        assert_true(!p->fallback || !p->required);
        assert_true(p->type != PROPERTY_CHOICE || p->choices);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(p->name, config_properties[k].name);
    }
    static const enum daemon daemons[] = { DAEMON_INGEST, DAEMON_DISPATCHER, DAEMON_REPORTER };
    char *environment[] = { "KAFKA_BROKERS=k:1",
                            "REDIS_ENDPOINT=r:1",
                            "GITHUB_APP_ID=1",
                            "GITHUB_APP_PRIVATE_KEY=x",
                            "ALLOWLIST_URL=/a",
                            "GITHUB_APP_SECRET=x",
                            NULL };
    for (size_t i = 0; i < 3; i++) {
        struct buf CLEANUP(buf_clear) faults;
        struct config *c = NULL;
        buf_init(&faults, 1 << 16);
        assert_int_equal(config_load(&c, daemons[i], environment, &faults), OK);
        config_free(c);
    }
}

static void help_and_markdown_name_every_property(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) help, CLEANUP(buf_clear) markdown;
    buf_init(&help, 1 << 18);
    buf_init(&markdown, 1 << 18);
    config_help(DAEMON_INGEST, "crcr-ingest", "x", NULL, &help);
    config_markdown(&markdown);
    for (size_t i = 0; i < config_n_properties; i++) {
        const struct property *p = &config_properties[i];
        char line[80];
        snprintf(line, sizeof(line), "\n  %s", p->name);
        assert_int_equal(strstr(buf_str(&help).ptr, line) != NULL,
                         (p->daemons & DAEMON_INGEST) != 0);
        snprintf(line, sizeof(line), "\n| `%s` |", p->name);
        assert_non_null(strstr(buf_str(&markdown).ptr, line));
    }
    struct str rest = buf_str(&help), row;
    while (str_split(&rest, '\n', &row))
        assert_true(row.len <= 96 || str_starts(row, "      Default: "));
    rest = buf_str(&markdown);
    while (str_split(&rest, '\n', &row)) { /* five cells a row */
        size_t bars = 0;
        for (size_t i = 0; i < row.len; i++)
            bars += row.ptr[i] == '|' && (i == 0 || row.ptr[i - 1] != '\\');
        assert_int_equal(bars, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fallbacks_hold_when_nothing_is_set),
        cmocka_unit_test(redis_has_an_authority_of_its_own_or_that_of_all),
        cmocka_unit_test(an_empty_value_counts_as_unset),
        cmocka_unit_test(every_missing_name_is_said_at_once),
        cmocka_unit_test(bad_values_are_refused_with_what_is_accepted),
        cmocka_unit_test(units_are_understood),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(names_that_kubernetes_sets_are_passed_over),
        cmocka_unit_test(a_name_of_another_daemon_is_no_fault),
        cmocka_unit_test(plain_http_is_for_loopback_only),
        cmocka_unit_test(allow_http_opens_every_url),
        cmocka_unit_test(kafka_properties_are_mapped),
        cmocka_unit_test(kafka_properties_that_the_rules_fix_are_refused),
        cmocka_unit_test(a_session_too_short_to_publish_in_is_refused),
        cmocka_unit_test(a_file_gives_the_value_without_its_newline),
        cmocka_unit_test(secrets_are_never_printed),
        cmocka_unit_test(urls_are_printed_without_login_and_query),
        cmocka_unit_test(a_fault_is_reported_without_what_may_be_a_secret),
        cmocka_unit_test(secrets_are_wiped),
        cmocka_unit_test(every_property_is_whole_and_its_fallback_is_accepted),
        cmocka_unit_test(help_and_markdown_name_every_property),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
