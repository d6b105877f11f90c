#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/github/github.h"

#define NOW    1795231200000LL /* Sat, 21 Nov 2026 03:20:00 GMT */
#define SECOND 1000LL

static struct github_answer judged(int status, const char *name, const char *value,
                                   const char *body)
{
    struct headers headers;
    struct github_answer answer;
    headers_init(&headers);
    if (name)
        headers_put(&headers, name, str_of(value));
    github_classify(status, &headers, str_of(body), NOW, &answer);
    return answer;
}

static void each_status_has_its_kind(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum err err;
    } table[] = {
        { 200, OK },          { 201, OK },          { 204, OK },          { 304, OK },
        { 301, ERR_REFUSE },  { 302, ERR_REFUSE },  { 307, ERR_REFUSE },  { 308, ERR_REFUSE },
        { 400, ERR_REFUSE },  { 401, ERR_RETRY },   { 403, ERR_REFUSE },  { 404, ERR_REFUSE },
        { 408, ERR_UNKNOWN }, { 409, ERR_RETRY },   { 410, ERR_REFUSE },  { 422, ERR_REFUSE },
        { 425, ERR_RETRY },   { 429, ERR_RETRY },   { 451, ERR_REFUSE },  { 500, ERR_UNKNOWN },
        { 502, ERR_UNKNOWN }, { 503, ERR_UNKNOWN }, { 504, ERR_UNKNOWN },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct github_answer a = judged(table[i].status, NULL, NULL, "{}");
        assert_int_equal(a.err, table[i].err);
        assert_int_equal(a.status, table[i].status);
        assert_int_equal(a.because, table[i].status == 429 ? GATE_RATE_LIMIT : GATE_NOW);
    }
}

static void retry_after_in_seconds_is_obeyed(void **state)
{
    (void)state;
    struct github_answer a = judged(429, "retry-after", "17", "");
    assert_true(a.because == GATE_RATE_LIMIT);
    assert_int_equal(a.wait_until_ms, NOW + 17 * SECOND);
    assert_int_equal(judged(403, "Retry-After", " 5 ", "").wait_until_ms, NOW + 5 * SECOND);
}

static void retry_after_as_a_date_is_obeyed(void **state)
{
    (void)state;
    struct github_answer a = judged(403, "retry-after", "Sat, 21 Nov 2026 03:21:30 GMT", "");
    assert_int_equal(a.err, ERR_RETRY);
    assert_int_equal(a.wait_until_ms, NOW + 90 * SECOND);
}

static void a_wait_is_at_least_a_second_and_at_most_a_day(void **state)
{
    (void)state;
    assert_int_equal(judged(429, "retry-after", "0", "").wait_until_ms, NOW + SECOND);
    assert_int_equal(judged(429, "retry-after", "Sat, 21 Nov 2020 03:21:30 GMT", "").wait_until_ms,
                     NOW + SECOND);
    assert_int_equal(judged(429, "retry-after", "99999999999", "").wait_until_ms,
                     NOW + 86400 * SECOND);
}

static void an_unreadable_retry_after_names_no_time(void **state)
{
    (void)state;
    static const char *const texts[] = { "soon", "-1", "1.5", "Sat, 21 Nov 2026 03:21:30 GMT!" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct github_answer a = judged(429, "retry-after", texts[i], "");
        assert_int_equal(a.because, GATE_RATE_LIMIT);
        assert_int_equal(a.wait_until_ms, 0);
    }
}

static void an_empty_budget_waits_until_its_reset(void **state)
{
    (void)state;
    struct headers headers;
    struct github_answer a;
    headers_init(&headers);
    headers_put(&headers, "x-ratelimit-remaining", STR_LIT("0"));
    headers_put_i64(&headers, "x-ratelimit-reset", NOW / 1000 + 600);
    github_classify(403, &headers, STR_LIT("{}"), NOW, &a);
    assert_true(a.because == GATE_RATE_LIMIT);
    assert_int_equal(a.wait_until_ms, NOW + 600 * SECOND);
    assert_int_equal(a.budget_left, 0);
    headers_put(&headers, "retry-after", STR_LIT("30"));
    github_classify(403, &headers, STR_LIT("{}"), NOW, &a);
    assert_int_equal(a.wait_until_ms, NOW + 30 * SECOND);
}

static void a_reset_later_than_a_day_is_not_believed(void **state)
{
    (void)state;
    static const int64_t resets[] = { NOW / 1000 + 86401, 8446744073709550, INT64_MAX, -1 };
    for (size_t i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
        struct headers headers;
        struct github_answer a;
        headers_init(&headers);
        headers_put(&headers, "x-ratelimit-remaining", STR_LIT("0"));
        headers_put_i64(&headers, "x-ratelimit-reset", resets[i]);
        github_classify(403, &headers, STR_LIT("{}"), NOW, &a);
        assert_true(a.because == GATE_RATE_LIMIT && !a.budget_reset_ms);
        assert_int_equal(a.wait_until_ms, 0);
    }
}

static void a_reset_without_an_empty_budget_says_nothing(void **state)
{
    (void)state;
    struct headers headers;
    struct github_answer a;
    headers_init(&headers);
    headers_put(&headers, "x-ratelimit-remaining", STR_LIT("4999"));
    headers_put_i64(&headers, "x-ratelimit-reset", NOW / 1000 + 3600);
    github_classify(429, &headers, STR_LIT("{}"), NOW, &a);
    assert_int_equal(a.wait_until_ms, 0);
    github_classify(403, &headers, STR_LIT("{}"), NOW, &a);
    assert_int_equal(a.err, ERR_REFUSE);
    assert_int_equal(a.budget_left, 4999);
}

static void the_secondary_limit_is_known_by_its_text(void **state)
{
    (void)state;
    struct github_answer a =
        judged(403, NULL, NULL, "{\"message\":\"You have exceeded a Secondary Rate Limit.\"}");
    assert_true(a.because == GATE_RATE_LIMIT);
    assert_int_equal(a.err, ERR_RETRY);
    assert_int_equal(a.wait_until_ms, 0);
    assert_int_equal(judged(403, NULL, NULL, "{\"message\":\"Forbidden\"}").err, ERR_REFUSE);
    assert_false(judged(422, NULL, NULL, "{\"message\":\"secondary rate limit\"}").because);
}

static void a_5xx_with_retry_after_is_unknown_and_waits(void **state)
{
    (void)state;
    struct github_answer a = judged(503, "retry-after", "120", "");
    assert_int_equal(a.err, ERR_UNKNOWN);
    assert_false(a.because);
    assert_int_equal(a.wait_until_ms, NOW + 120 * SECOND);
}

static void the_next_page_is_a_path(void **state)
{
    (void)state;
    struct github_answer a =
        judged(200, "link",
               "<https://api.github.com/x?page=1>; rel=\"prev\", "
               "<https://api.github.com/repos/o/r/y?per_page=100&page=3>; rel=\"next\"",
               "");
    assert_true(str_is(a.next_page, "/repos/o/r/y?per_page=100&page=3"));
    static const char *const none[] = { "<https://api.github.com/x>; rel=\"last\"", "rel=\"next\"",
                                        "<nonsense>; rel=\"next\"", ">https://a/b<; rel=\"next\"",
                                        "" };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(judged(200, "link", none[i], "").next_page.len, 0);
}

static void the_next_page_of_an_enterprise_server_has_its_prefix_once(void **state)
{
    (void)state;
    static const struct {
        const char *api_url, *page, *want;
    } table[] = {
        { "https://git.corp/api/v3", "/api/v3/repos/o/r?page=2", "/repos/o/r?page=2" },
        { "https://git.corp/api/v3", "/api/v30/x", "/api/v30/x" },
        { "https://git.corp/api/v3", "/api/v3", "/api/v3" },
        { "https://git.corp/api/v3", "", "" },
        { "https://api.github.com", "/repos/o/r?page=2", "/repos/o/r?page=2" },
        { "http://127.0.0.1:80", "/x", "/x" },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_true(
            str_is(github_page_below(str_of(table[i].page), table[i].api_url), table[i].want));
}

static void the_reason_names_status_message_and_what_to_look_at(void **state)
{
    (void)state;
    char text[512];
    struct github_answer a = judged(404, NULL, NULL, "");
    github_explain(&a, STR_LIT("{\"message\":\"Not\\nFound\"}"), STR_LIT("org/a"), text,
                   sizeof(text));
    assert_string_equal(
        text, "404 Not Found: Not Found (org/a: does it exist, and is the App installed there?)");
    github_explain(&a, STR_LIT("<html>"), STR_NONE, text, sizeof(text));
    assert_string_equal(text, "404 Not Found (does it exist, and is the App installed there?)");
    a = judged(429, NULL, NULL, "");
    github_explain(&a, STR_LIT("{\"message\":7}"), STR_LIT("org/a"), text, sizeof(text));
    assert_string_equal(text, "429 Too Many Requests (rate limit)");
    github_explain(&a, STR_NONE, STR_NONE, text, 8);
    assert_string_equal(text, "429 Too");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_kind),
        cmocka_unit_test(retry_after_in_seconds_is_obeyed),
        cmocka_unit_test(retry_after_as_a_date_is_obeyed),
        cmocka_unit_test(a_wait_is_at_least_a_second_and_at_most_a_day),
        cmocka_unit_test(an_unreadable_retry_after_names_no_time),
        cmocka_unit_test(an_empty_budget_waits_until_its_reset),
        cmocka_unit_test(a_reset_later_than_a_day_is_not_believed),
        cmocka_unit_test(a_reset_without_an_empty_budget_says_nothing),
        cmocka_unit_test(the_secondary_limit_is_known_by_its_text),
        cmocka_unit_test(a_5xx_with_retry_after_is_unknown_and_waits),
        cmocka_unit_test(the_next_page_is_a_path),
        cmocka_unit_test(the_next_page_of_an_enterprise_server_has_its_prefix_once),
        cmocka_unit_test(the_reason_names_status_message_and_what_to_look_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
