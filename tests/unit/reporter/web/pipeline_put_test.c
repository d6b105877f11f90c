#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <string.h>
#include <cmocka.h>

#include "reporter/web/pipeline_put.h"

#define NOW 1790000000000LL

static struct topics topics;
static struct pipeline_look look;
static struct pipeline_view view;
static struct canary canary;

static int start(void **state)
{
    (void)state;
    pipeline_look_init(&look);
    look.at_ms = NOW;
    view = (struct pipeline_view){ .error = "",
                                   .now_ms = NOW,
                                   .sha = "abc",
                                   .redis_error = "",
                                   .refused = "",
                                   .canary = &canary };
    return topics_init(&topics, "crcr.", NULL);
}

static int end(void **state)
{
    (void)state;
    pipeline_look_clear(&look);
    return 0;
}

static json_t *read(void (*put)(struct buf *, const struct pipeline_view *))
{
    struct buf CLEANUP(buf_clear) text, CLEANUP(buf_clear) all, CLEANUP(buf_clear) health;
    buf_init(&text, 1 << 20);
    buf_init(&all, 1 << 20);
    buf_init(&health, 1 << 20);
    pipeline_look_put(&all, &health, &look, &topics);
    view.pipeline = &all;
    view.health = &health;
    put(&text, &view);
    json_t *root = json_loads(buf_str(&text).ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

/* Of the first topic of a role in /api/crcr/pipeline: the oldest record, to be released; and how
 * long the role waits by the cards. */
static json_t *oldest_of(const char *role, size_t topic)
{
    json_t *root = read(pipeline_put), *found = NULL, *group;
    size_t i;
    json_array_foreach(json_object_get(root, "groups"), i,
                       group) if (strcmp(json_string_value(json_object_get(group, "role")), role) ==
                                  0) found =
        json_object_get(json_array_get(json_object_get(group, "topics"), topic), "oldest");
    json_incref(found);
    json_decref(root);
    return found;
}

static double seconds_of(const char *role)
{
    json_t *root = read(health_put), *one;
    double seconds = -1;
    size_t i;
    json_array_foreach(json_object_get(root, "roles"), i,
                       one) if (strcmp(json_string_value(json_object_get(one, "role")), role) == 0)
        seconds = json_real_value(json_object_get(one, "seconds"));
    json_decref(root);
    return seconds;
}

static struct record record(int64_t offset, int64_t at_ms)
{
    struct record r = { .at = { "t", 3, offset }, .timestamp_ms = at_ms, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "error", STR_LIT("503 \"from\" GitHub"));
    return r;
}

static void the_oldest_record_is_shown_and_counts(void **state)
{
    (void)state;
    struct topic_look *w = &look.of[GROUP_L4][TOPIC_DISPATCH_L4];
    struct record newer = record(9, NOW - 1000), older = record(7, NOW - 31000);
    w->records = 2;
    topic_look_note(w, &newer);
    topic_look_note(w, &older);
    topic_look_note(w, &newer);
    assert_int_equal(w->records, 2);
    assert_true(seconds_of("l4") == 31);
    assert_true(seconds_of("l3") == 0);
    json_t *oldest = oldest_of("l4", 0);
    assert_string_equal(json_string_value(json_object_get(oldest, "position")), "3@7");
    assert_string_equal(json_string_value(json_object_get(oldest, "error")), "503 \"from\" GitHub");
    assert_true(json_is_null(json_object_get(oldest, "attempt")));
    json_decref(oldest);
}

static void what_is_put_off_waits_only_from_its_time_on(void **state)
{
    (void)state;
    struct topic_look *w = &look.of[GROUP_DELAY][TOPIC_DELAY_1H];
    struct record later = record(1, NOW - 3000000), first = record(2, NOW - 2000000);
    headers_put_i64(&later.headers, "not_before_ms", NOW + 9000);
    headers_put_i64(&first.headers, "not_before_ms", NOW + 5000);
    topic_look_note(w, &later);
    topic_look_note(w, &first);
    assert_true(seconds_of("delay") == 0);
    look.at_ms = NOW + 66000;
    assert_true(seconds_of("delay") == 61);
    json_t *oldest = oldest_of("delay", 3);
    assert_string_equal(json_string_value(json_object_get(oldest, "position")), "3@2");
    json_decref(oldest);
}

static void what_is_not_known_is_null(void **state)
{
    (void)state;
    look.at_ms = 0;
    json_t *root = read(health_put);
    assert_int_equal(json_array_size(json_object_get(root, "roles")), 0);
    assert_true(json_is_null(json_object_get(json_object_get(root, "dlq"), "open")));
    assert_true(json_is_null(json_object_get(json_object_get(root, "breakers"), "open")));
    assert_true(json_is_false(json_object_get(json_object_get(root, "allowlist"), "caught_up")));
    assert_true(json_is_null(json_object_get(json_object_get(root, "dispatches"), "dispatched")));
    json_decref(root);
    root = read(pipeline_put);
    assert_int_equal(json_array_size(json_object_get(root, "groups")), 0);
    assert_true(json_is_null(json_object_get(root, "looked_at")));
    json_decref(root);
}

/* Open pages follow health: what no reader sees must not change it. */
static void only_an_error_shows_when_kafka_was_looked_at(void **state)
{
    (void)state;
    view.looked_ms = NOW;
    json_t *root = read(health_put);
    assert_true(json_is_null(json_object_get(root, "looked_at")));
    json_decref(root);
    view.error = "no answer";
    root = read(health_put);
    assert_non_null(json_string_value(json_object_get(root, "looked_at")));
    json_decref(root);
}

static void of_the_dlq_the_newest_are_shown_and_all_counted(void **state)
{
    (void)state;
    struct dlq dlq = { .open_max = 1000 };
    for (int i = 0; i < PIPELINE_DLQ_SHOWN + 5; i++) {
        struct record r = record(i, NOW + i);
        dlq_add(&dlq, (struct dlq_position){ 3, i }, NOW + i, r.key, &r.headers);
    }
    dlq_sort(&dlq, true);
    view.dlq = &dlq;
    json_t *root = read(pipeline_put);
    const json_t *queue = json_object_get(root, "dlq"), *list = json_object_get(queue, "entries");
    assert_int_equal(json_integer_value(json_object_get(queue, "open")), PIPELINE_DLQ_SHOWN + 5);
    assert_int_equal(json_array_size(list), PIPELINE_DLQ_SHOWN);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "position")),
                        "3@204");
    json_decref(root);
    dlq_clear(&dlq);
}

static void of_each_bucket_the_account_with_least_is_shown(void **state)
{
    (void)state;
    const struct budget_rules rules = { .limit = { [BUDGET_REQUESTS_HOUR] = 5000 } };
    const struct str accounts[] = { STR_LIT("one"), STR_LIT("two"), STR_LIT("three") };
    const struct budget_used used[] = { { .limited_us = 5000000 },
                                        { .used_us = { [BUDGET_REQUESTS_HOUR] = 60000000 } },
                                        { .used_us = { [BUDGET_REQUESTS_HOUR] = 3000000 } } };
    view.rules = &rules;
    view.accounts = accounts;
    view.used = used;
    view.n_accounts = 3;
    json_t *root = read(health_put);
    const json_t *budget = json_object_get(root, "budget");
    const json_t *buckets = json_object_get(budget, "buckets"), *one = json_array_get(buckets, 0);
    assert_int_equal(json_array_size(buckets), 1); /* the others have no limit */
    assert_string_equal(json_string_value(json_object_get(one, "account")), "two");
    assert_true(json_integer_value(json_object_get(one, "left")) <
                json_integer_value(json_object_get(one, "of")));
    assert_int_equal(json_integer_value(json_object_get(one, "limit")), 5000);
    assert_string_equal(json_string_value(json_object_get(one, "full_at")),
                        "2026-09-21T14:14:30.000Z"); /* in a minute, in steps of 10 s */
    assert_true(json_is_null(json_object_get(one, "l4_at")));
    assert_string_equal(json_string_value(json_object_get(budget, "limited_until")),
                        "2026-09-21T14:13:25.000Z");
    json_decref(root);
}

static void an_empty_bucket_says_when_each_class_has_a_token_again(void **state)
{
    (void)state;
    const struct budget_rules rules = { .limit = { [BUDGET_REQUESTS_HOUR] = 5000 } };
    const struct str account = STR_LIT("one");
    const struct budget_used used = { .used_us = { [BUDGET_REQUESTS_HOUR] = 1200000000 } };
    view.rules = &rules;
    view.accounts = &account;
    view.used = &used;
    view.n_accounts = 1;
    json_t *root = read(health_put),
           *one = json_array_get(json_object_get(json_object_get(root, "budget"), "buckets"), 0);
    const char *l4 = json_string_value(json_object_get(one, "l4_at"));
    const char *rest = json_string_value(json_object_get(one, "rest_at"));
    assert_int_equal(json_integer_value(json_object_get(one, "left_l4")), 0);
    assert_true(l4 && rest && strcmp(l4, rest) < 0);
    assert_true(strcmp(rest, json_string_value(json_object_get(one, "full_at"))) < 0);
    json_decref(root);
}

static void redis_says_since_when_it_has_not_answered(void **state)
{
    (void)state;
    view.redis_error = "the view is unavailable";
    view.redis_since_ms = NOW;
    json_t *root = read(pipeline_put);
    const json_t *redis = json_object_get(root, "redis");
    assert_string_equal(json_string_value(json_object_get(redis, "error")), view.redis_error);
    assert_non_null(json_string_value(json_object_get(redis, "since")));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_record_is_shown_and_counts, start, end),
        cmocka_unit_test_setup_teardown(what_is_put_off_waits_only_from_its_time_on, start, end),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_null, start, end),
        cmocka_unit_test_setup_teardown(only_an_error_shows_when_kafka_was_looked_at, start, end),
        cmocka_unit_test_setup_teardown(of_each_bucket_the_account_with_least_is_shown, start, end),
        cmocka_unit_test_setup_teardown(an_empty_bucket_says_when_each_class_has_a_token_again,
                                        start, end),
        cmocka_unit_test_setup_teardown(redis_says_since_when_it_has_not_answered, start, end),
        cmocka_unit_test_setup_teardown(of_the_dlq_the_newest_are_shown_and_all_counted, start,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
