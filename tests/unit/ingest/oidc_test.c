/* Tokens and the keys of their issuers, against an issuer on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/crypto/jwt.h"
#include "common/io/http_server.h"
#include "ingest/oidc.h"

#define AUDIENCE "relay"
#define ISSUER   "https://token.actions.githubusercontent.com"
#define WAIT_MS  5000

/* ---- an issuer ------------------------------------------------------------------------------ */

static struct {
    struct http_server *server;
    struct jwt_key *key;
    char *first, *second; /* JWK Sets with kid k1, k2 */
    atomic_bool down, rotated, hangs;
    _Atomic(struct http_exchange *) hung; /* what it has not answered */
    atomic_int fetches;
} issuer;

static void serve_keys(void *opaque, struct http_exchange *x)
{
    (void)opaque;
    atomic_fetch_add(&issuer.fetches, 1);
    if (atomic_load(&issuer.hangs)) {
        atomic_store(&issuer.hung, x);
        return;
    }
    if (atomic_load(&issuer.down)) {
        http_reply_error(x, 500, "down");
        return;
    }
    http_reply(x, 200, NULL, NULL,
               str_of(atomic_load(&issuer.rotated) ? issuer.second : issuer.first));
}

static const struct http_route routes[] = { { "GET", "/jwks", NULL, serve_keys, 0, 0, 0 } };

static int issuer_open(void **state)
{
    (void)state;
    FILE *made = popen("openssl genrsa 2048 2>/dev/null", "r");
    char pem[8192];
    size_t len = fread(pem, 1, sizeof(pem), made);
    pclose(made);
    struct why why = { "" };
    const struct http_server_options options = { .listen = "127.0.0.1:0",
                                                 .routes = routes,
                                                 .n_routes = 1 };
    if (jwt_key_new(&issuer.key, (struct str){ pem, len }, &why) ||
        jwt_key_jwks(issuer.key, STR_LIT("k1"), &issuer.first, &why) ||
        jwt_key_jwks(issuer.key, STR_LIT("k2"), &issuer.second, &why) ||
        http_server_new(&issuer.server, &options, &why)) {
        print_error("%s\n", why.text);
        return -1;
    }
    return 0;
}

static int issuer_close(void **state)
{
    (void)state;
    http_server_free(issuer.server, 1000);
    jwt_key_free(issuer.key);
    free(issuer.first);
    free(issuer.second);
    return 0;
}

static int issuer_reset(void **state)
{
    (void)state;
    atomic_store(&issuer.down, false);
    atomic_store(&issuer.rotated, false);
    atomic_store(&issuer.fetches, 0);
    return 0;
}

static char *token_for(const char *name, const char *kid)
{
    char claims[512];
    long long now = (long long)(clock_wall_ms() / 1000);
    snprintf(claims, sizeof(claims),
             "{\"iss\":\"%s\",\"aud\":\"" AUDIENCE "\",\"repository\":\"o/r\",\"iat\":%lld,"
             "\"nbf\":%lld,\"exp\":%lld}",
             name, now, now, now + 300);
    char *token = NULL;
    struct why why;
    assert_int_equal(jwt_sign_rs256(issuer.key, str_of(kid), str_of(claims), &token, &why), OK);
    return token;
}

static struct oidc *oidc_open(int unknown_kid_ms)
{
    char issuers[256];
    snprintf(issuers, sizeof(issuers), ISSUER "=http://127.0.0.1:%d/jwks o vendor-labs",
             http_server_port(issuer.server));
    const struct oidc_options options = { .issuers = issuers,
                                          .audience = AUDIENCE,
                                          .unknown_kid_ms = unknown_kid_ms };
    struct oidc *oidc = NULL;
    struct why why;
    assert_int_equal(oidc_new(&oidc, &options, &why), OK);
    return oidc;
}

/* 200 when the token is good, else the status of its refusal. */
static int verify_within(struct oidc *oidc, const char *kid, int wait_ms)
{
    char *CLEANUP(mem_free_char) token = token_for(ISSUER, kid);
    struct jwt *CLEANUP(jwt_cleanup) jwt = NULL;
    struct str name;
    struct answer v = { 0 };
    enum oidc_result result = oidc_verify(oidc, str_of(token), wait_ms, &jwt, &name, &v);
    assert_int_equal(result, v.status == 0     ? OIDC_VERIFIED
                             : v.status == 503 ? OIDC_NO_KEYS
                                               : OIDC_REFUSED);
    if (result)
        return v.status;
    assert_true(str_is(jwt_claim(jwt, "repository"), "o/r"));
    assert_true(str_is(name, ISSUER));
    return 200;
}

static int verify(struct oidc *oidc, const char *kid)
{
    return verify_within(oidc, kid, WAIT_MS);
}

/* Until unknown_kid_ms = 1 is over: only then is an issuer asked again. */
static void unknown_kid_pause(void)
{
    int64_t since_ms = clock_mono_ms();
    while (clock_mono_ms() - since_ms < 2)
        ;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void first_request_waits_for_the_first_keys(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(0);
    assert_int_equal(verify(oidc, "k1"), 200);
    struct str name;
    double age_s;
    assert_true(oidc_age(oidc, 0, &name, &age_s));
    assert_true(str_is(name, ISSUER) && age_s >= 0 && age_s < 60);
    assert_false(oidc_age(oidc, 1, &name, &age_s));
    oidc_free(oidc);
}

static void keys_that_cannot_be_had_are_503(void **state)
{
    (void)state;
    atomic_store(&issuer.down, true);
    struct oidc *oidc = oidc_open(0);
    assert_int_equal(verify(oidc, "k1"), 503);
    struct str name;
    double age_s;
    assert_true(oidc_age(oidc, 0, &name, &age_s));
    assert_true(age_s < 0);
    oidc_free(oidc);
}

static void unknown_key_is_fetched_at_once(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(1);
    assert_int_equal(verify(oidc, "k1"), 200);
    atomic_store(&issuer.rotated, true);
    unknown_kid_pause();
    assert_int_equal(verify(oidc, "k2"), 200);
    assert_int_equal(verify(oidc, "k1"), 401);
    oidc_free(oidc);
}

static void unknown_key_is_not_asked_for_again_and_again(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(0);
    assert_int_equal(verify(oidc, "k1"), 200);
    for (int i = 0; i < 20; i++)
        assert_int_equal(verify(oidc, "k2"), 401);
    assert_int_equal(atomic_load(&issuer.fetches), 1);
    oidc_free(oidc);
}

static void issuer_that_hangs_is_asked_once_and_costs_its_known_keys_nothing(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(1);
    assert_int_equal(verify(oidc, "k1"), 200);
    atomic_store(&issuer.hangs, true);
    unknown_kid_pause();
    int64_t began_ms = clock_mono_ms();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(verify_within(oidc, "k2", 0), 503);
        assert_int_equal(verify(oidc, "k1"), 200);
    }
    assert_true(clock_mono_ms() - began_ms < WAIT_MS / 2);
    while (!atomic_load(&issuer.hung))
        assert_true(clock_mono_ms() - began_ms < WAIT_MS);
    assert_int_equal(atomic_load(&issuer.fetches), 2);
    atomic_store(&issuer.hangs, false);
    http_reply_error(issuer.hung, 500, "down");
    oidc_free(oidc);
}

static void keys_are_kept_while_their_issuer_is_down(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(1);
    assert_int_equal(verify(oidc, "k1"), 200);
    atomic_store(&issuer.down, true);
    unknown_kid_pause();
    assert_int_equal(verify(oidc, "k2"), 503); /* it may be a new one: ask again later */
    assert_int_equal(verify(oidc, "k1"), 200);
    oidc_free(oidc);
}

static void only_trusted_issuers_and_rs256_get_past_a_glance(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(0);
    struct answer v;
    char *good = token_for(ISSUER, "k1"), *other = token_for("https://evil.example", "k1");
    assert_true(oidc_glance(oidc, str_of(good), &v));
    assert_false(oidc_glance(oidc, str_of(other), &v));
    assert_int_equal(v.status, 401);
    assert_false(oidc_glance(oidc, STR_LIT("not.a.token"), &v));
    assert_int_equal(v.status, 401);
    char *hmac = NULL;
    struct why why;
    assert_int_equal(jwt_sign_hs256(STR_LIT("0123456789012345678901234567890123456789"),
                                    STR_LIT("k1"), STR_LIT("{\"iss\":\"" ISSUER "\"}"), &hmac,
                                    &why),
                     OK);
    assert_false(oidc_glance(oidc, str_of(hmac), &v));
    assert_string_equal(v.reason, "token_algorithm");
    free(good);
    free(other);
    free(hmac);
    oidc_free(oidc);
}

static void malformed_issuers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { ",",
                                       "https://a",
                                       "https://a=",
                                       "a=https://a/jwks owner",
                                       "=https://a/jwks",
                                       "https://user:hush@a=https://a/jwks",
                                       "https://a=https://user:hush@a/jwks",
                                       "https://a=https://a/jwks owner/repo",
                                       "https://a=ftp://b",
                                       "https://a=http://example.com/jwks",
                                       "https://a=https://a/jwks",
                                       "https://a=https://a/jwks  " };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct oidc_options options = { .issuers = bad[i], .check_only = true };
        struct oidc *oidc = NULL;
        struct why why = { "" };
        assert_int_equal(oidc_new(&oidc, &options, &why), ERR_REFUSE);
        assert_non_null(strstr(why.text, "CRCR_OIDC_ISSUERS"));
        assert_null(strstr(why.text, "hush"));
    }
}

/* The key of one vendor's CI says nothing about another vendor. */
static void an_issuer_speaks_for_its_owners_only(void **state)
{
    (void)state;
    const struct oidc_options options = {
        .issuers = "https://token.actions.githubusercontent.com=https://a/jwks,"
                   "https://agent.buildkite.com=https://b/jwks,"
                   "https://ci.example=https://ci.example/jwks vendor  Vendor-Labs",
        .check_only = true
    };
    static const struct {
        const char *issuer, *repo;
        bool may;
    } cases[] = {
        { "https://ci.example", "vendor/oot", true },
        { "https://ci.example", "VENDOR-labs/oot", true },
        { "https://ci.example", "vendor2/oot", false },
        { "https://ci.example", "vend/oot", false },
        { "https://ci.example", "other/vendor", false },
        { "https://token.actions.githubusercontent.com", "other/oot", true },
        { "https://agent.buildkite.com", "other/oot", true },
    };
    struct oidc *oidc = NULL;
    struct why why;
    assert_int_equal(oidc_new(&oidc, &options, &why), OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer v = { 0 };
        assert_int_equal(oidc_owner_check(oidc, str_of(cases[i].issuer), str_of(cases[i].repo), &v),
                         cases[i].may);
        assert_int_equal(v.status, cases[i].may ? 0 : 403);
    }
    oidc_free(oidc);
}

static void *verify_often(void *opaque)
{
    for (int i = 0; i < 200; i++) {
        int status = verify(opaque, i % 2 == 0 ? "k1" : "k2");
        if (status != 200 && status != 401)
            return "neither taken nor refused";
    }
    return NULL;
}

static void keys_may_change_under_their_readers(void **state)
{
    (void)state;
    struct oidc *oidc = oidc_open(1);
    pthread_t readers[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, verify_often, oidc), 0);
    for (int i = 0; i < 50; i++) {
        atomic_store(&issuer.rotated, i % 2 == 0);
        (void)verify(oidc, "k1");
    }
    for (size_t i = 0; i < 4; i++) {
        void *fault;
        pthread_join(readers[i], &fault);
        assert_null(fault);
    }
    oidc_free(oidc);
    oidc_free(NULL);
}

#define TEST(fn) cmocka_unit_test_setup(fn, issuer_reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_request_waits_for_the_first_keys),
        TEST(keys_that_cannot_be_had_are_503),
        TEST(unknown_key_is_fetched_at_once),
        TEST(unknown_key_is_not_asked_for_again_and_again),
        TEST(issuer_that_hangs_is_asked_once_and_costs_its_known_keys_nothing),
        TEST(keys_are_kept_while_their_issuer_is_down),
        TEST(only_trusted_issuers_and_rs256_get_past_a_glance),
        TEST(malformed_issuers_are_refused),
        TEST(an_issuer_speaks_for_its_owners_only),
        TEST(keys_may_change_under_their_readers),
    };
    return cmocka_run_group_tests(tests, issuer_open, issuer_close);
}
