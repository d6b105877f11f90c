/* The dead-letter queue: resolutions, choosing, and the way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "deploy/crcrctl/dlq.h"

static struct topics topics;
static struct dlq dlq;

static int start(void **state)
{
    struct why why;
    (void)state;
    dlq = (struct dlq){ .open_max = 0 };
    return topics_init(&topics, "crcr.", &why);
}

static int end(void **state)
{
    (void)state;
    dlq_clear(&dlq);
    return 0;
}

static struct record *parked(int32_t partition, int64_t offset)
{
    static struct record r;
    r = (struct record){ .at = { "crcr.dlq", partition, offset },
                         .timestamp_ms = 1000 + offset,
                         .key = STR_LIT("pytorch/pytorch#1"),
                         .value = STR_LIT("{}") };
    headers_init(&r.headers);
    headers_put(&r.headers, "event", STR_LIT("pull_request"));
    headers_put(&r.headers, "delivery", STR_LIT("d-1"));
    headers_put(&r.headers, "repos", STR_LIT("org/a,org/c"));
    headers_put(&r.headers, "attempt", STR_LIT("4"));
    headers_put(&r.headers, "maybe_duplicate", STR_LIT("1"));
    headers_put(&r.headers, "source_topic", STR_LIT("crcr.dispatch.l2"));
    headers_put(&r.headers, "class", STR_LIT("refused"));
    headers_put(&r.headers, "error", STR_LIT("404"));
    headers_put_i64(&r.headers, "parked_ms", 5000 - offset);
    return &r;
}

static void add(const struct record *r)
{
    dlq_add(&dlq, dlq_position_of(r), r->timestamp_ms, r->key, &r->headers);
}

static void add_resolution(const char *resolves, const char *class)
{
    struct record r = { .at = { "crcr.dlq", 0, 99 + (int64_t)dlq_count(&dlq) },
                        .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "resolves", str_of(resolves));
    headers_put(&r.headers, "class", str_of(class));
    add(&r);
}

static enum dlq_state state_at(int32_t partition, int64_t offset)
{
    const struct dlq_entry *e = dlq_find(&dlq, (struct dlq_position){ partition, offset });
    assert_non_null(e);
    return e->state;
}

static void a_resolution_closes_its_entry_wherever_it_comes(void **state)
{
    (void)state;
    add_resolution("1@7", "dropped");
    add(parked(1, 8));
    add(parked(1, 7));
    add(parked(0, 7));
    add_resolution("0@7", "replayed");
    add_resolution("0@7", "replayed"); /* two operators at once */
    dlq_sort(&dlq, false);
    assert_int_equal(dlq_count(&dlq), 3);
    assert_int_equal(state_at(1, 7), DLQ_DROPPED);
    assert_int_equal(state_at(0, 7), DLQ_REPLAYED);
    assert_int_equal(state_at(1, 8), DLQ_OPEN);
    assert_null(dlq_find(&dlq, (struct dlq_position){ 0, 99 }));
}

static void a_malformed_resolution_is_an_entry(void **state)
{
    (void)state;
    add_resolution("everything", "dropped");
    add_resolution("1@7", "poison"); /* what was written to the DLQ came with that header */
    dlq_sort(&dlq, false);
    assert_int_equal(dlq_count(&dlq), 2);
}

static void the_oldest_comes_first(void **state)
{
    (void)state;
    add(parked(0, 1)); /* parked_ms falls with the offset here */
    add(parked(0, 2));
    dlq_sort(&dlq, false);
    assert_int_equal(dlq_next(&dlq, NULL)->at.offset, 2);
}

static void places_have_one_form(void **state)
{
    (void)state;
    static const char *const bad[] = { "",     "3",   "3@",    "@3",          "-1@2",
                                       "1@-2", "a@b", "1@2@3", "9999999999@1" };
    struct dlq_position at;
    assert_true(dlq_position_parse(STR_LIT("3@17"), &at));
    assert_true(at.partition == 3 && at.offset == 17);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (dlq_position_parse(str_of(bad[i]), &at))
            fail_msg("%s was taken", bad[i]);
}

static bool matches(struct dlq_filter filter)
{
    return dlq_matches(&filter, &topics, dlq_next(&dlq, NULL));
}

static void filters_are_anded(void **state)
{
    (void)state;
    add(parked(3, 17));
    dlq_sort(&dlq, false);
    assert_true(matches((struct dlq_filter){ .since_ms = 0 }));
    assert_true(matches((struct dlq_filter){ .class = STR_LIT("refused"),
                                             .repo = STR_LIT("ORG/A"),
                                             .delivery = STR_LIT("d-1"),
                                             .source = STR_LIT("dispatch.l2"),
                                             .since_ms = 4983,
                                             .positions = { { 3, 17 } },
                                             .n_positions = 1 }));
    assert_true(matches((struct dlq_filter){ .source = STR_LIT("crcr.dispatch.l2") }));
    assert_false(matches((struct dlq_filter){ .class = STR_LIT("poison") }));
    assert_false(matches((struct dlq_filter){ .repo = STR_LIT("org/b") }));
    assert_false(matches((struct dlq_filter){ .delivery = STR_LIT("d-2") }));
    assert_false(matches((struct dlq_filter){ .source = STR_LIT("events") }));
    assert_false(matches((struct dlq_filter){ .since_ms = 4984 }));
    assert_false(matches((struct dlq_filter){ .positions = { { 3, 18 } }, .n_positions = 1 }));
}

static void a_filter_finds_each_downstream_of_an_entry(void **state)
{
    (void)state;
    add(parked(3, 17));
    dlq_sort(&dlq, false);
    assert_true(matches((struct dlq_filter){ .repo = STR_LIT("org/a") }));
    assert_true(matches((struct dlq_filter){ .repo = STR_LIT("Org/C") }));
    assert_false(matches((struct dlq_filter){ .repo = STR_LIT("org/a,org/c") }));
    assert_false(matches((struct dlq_filter){ .repo = STR_LIT("org") }));
}

static struct record *parked_of_the_old_form(void)
{
    struct record *r = parked(3, 17);
    r->key = STR_LIT("org/a|pytorch/pytorch#1");
    headers_remove(&r->headers, "repos");
    headers_put(&r->headers, "repo", STR_LIT("org/a"));
    return r;
}

static void an_entry_of_the_old_form_is_found_goes_back_and_is_resolved(void **state)
{
    (void)state;
    struct headers h;
    struct why why;
    enum topic target;
    struct record *r = parked_of_the_old_form();
    add(r);
    dlq_sort(&dlq, false);
    assert_string_equal(dlq_next(&dlq, NULL)->repos, "org/a");
    assert_true(matches((struct dlq_filter){ .repo = STR_LIT("ORG/A") }));
    assert_false(matches((struct dlq_filter){ .repo = STR_LIT("org/c") }));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), OK);
    assert_true(str_is(headers_get(&h, "repo"), "org/a"));
    assert_null(headers_get(&h, "repos").ptr);
    dlq_resolution_headers(r, DLQ_REPLAYED, 77, &h);
    assert_true(str_is(headers_get(&h, "repo"), "org/a"));
}

static void a_task_goes_back_as_a_first_attempt(void **state)
{
    (void)state;
    struct headers h;
    struct why why;
    enum topic target;
    assert_int_equal(dlq_unpark(&topics, parked(3, 17), &target, &h, &why), OK);
    assert_int_equal(target, TOPIC_DISPATCH_L2);
    assert_true(str_is(headers_get(&h, "attempt"), "1"));
    assert_true(str_is(headers_get(&h, "maybe_duplicate"), "1"));
    assert_true(str_is(headers_get(&h, "delivery"), "d-1"));
    assert_true(str_is(headers_get(&h, "repos"), "org/a,org/c"));
    assert_true(str_is(headers_get(&h, "dlq"), "3@17"));
    static const char *const gone[] = { "source_topic", "class", "error", "parked_ms" };
    for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
        assert_null(headers_get(&h, gone[i]).ptr);
}

static void what_came_from_a_delay_goes_where_the_delay_would_have_sent_it(void **state)
{
    (void)state;
    struct headers h;
    struct why why;
    enum topic target;
    struct record *r = parked(0, 1);
    headers_set(&r->headers, "source_topic", STR_LIT("crcr.delay.1h"));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), ERR_REFUSE);
    headers_set(&r->headers, "to_topic", STR_LIT("crcr.callbacks"));
    headers_set(&r->headers, "not_before_ms", STR_LIT("never"));
    headers_set(&r->headers, "delays", STR_LIT("3"));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), OK);
    assert_int_equal(target, TOPIC_CALLBACKS);
    assert_null(headers_get(&h, "to_topic").ptr);
    assert_null(headers_get(&h, "not_before_ms").ptr);
    assert_null(headers_get(&h, "delays").ptr);
}

static void what_the_reporter_put_off_becomes_no_task(void **state)
{
    (void)state;
    struct headers h;
    struct why why;
    enum topic target;
    struct record *r = parked(0, 1);
    headers_set(&r->headers, "source_topic", STR_LIT("crcr.rdelay.1h"));
    headers_set(&r->headers, "to_topic", STR_LIT("crcr.dispatch.l4"));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), ERR_REFUSE);
    assert_string_equal(why.text, "from crcr.rdelay.1h nothing goes back to 'crcr.dispatch.l4'");
    headers_set(&r->headers, "to_topic", STR_LIT("crcr.reconcile"));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), OK);
    assert_int_equal(target, TOPIC_RECONCILE);
}

static void what_came_from_nowhere_stays(void **state)
{
    (void)state;
    static const char *const nowhere[] = { "crcr.allowlist", "crcr.dlq",    "crcr.dispatches",
                                           "crcr.results",   "other.topic", "" };
    struct headers h;
    struct why why;
    enum topic target;
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++) {
        struct record *r = parked(0, 1);
        headers_set(&r->headers, "source_topic", str_of(nowhere[i]));
        assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), ERR_REFUSE);
    }
}

static void what_was_cut_is_not_put_back(void **state)
{
    (void)state;
    struct headers h;
    struct why why;
    enum topic target;
    struct record *r = parked(0, 1);
    headers_set(&r->headers, "cut", STR_LIT("too large to keep: a value of 31457280"));
    assert_int_equal(dlq_unpark(&topics, r, &target, &h, &why), ERR_REFUSE);
    assert_string_equal(why.text,
                        "only a part of it is here: too large to keep: a value of 31457280");
}

static void a_resolution_says_what_it_resolves_and_whose_it_is(void **state)
{
    (void)state;
    struct headers h;
    dlq_resolution_headers(parked(3, 17), DLQ_DROPPED, 77, &h);
    assert_true(str_is(headers_get(&h, "resolves"), "3@17"));
    assert_true(str_is(headers_get(&h, "class"), "dropped"));
    assert_true(str_is(headers_get(&h, "delivery"), "d-1"));
    assert_true(str_is(headers_get(&h, "repos"), "org/a,org/c"));
    assert_true(str_is(headers_get(&h, "resolved_ms"), "77"));
    assert_null(headers_get(&h, "error").ptr);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_resolution_closes_its_entry_wherever_it_comes),
        TEST(a_malformed_resolution_is_an_entry),
        TEST(the_oldest_comes_first),
        TEST(places_have_one_form),
        TEST(filters_are_anded),
        TEST(a_filter_finds_each_downstream_of_an_entry),
        TEST(an_entry_of_the_old_form_is_found_goes_back_and_is_resolved),
        TEST(a_task_goes_back_as_a_first_attempt),
        TEST(what_came_from_a_delay_goes_where_the_delay_would_have_sent_it),
        TEST(what_the_reporter_put_off_becomes_no_task),
        TEST(what_came_from_nowhere_stays),
        TEST(what_was_cut_is_not_put_back),
        TEST(a_resolution_says_what_it_resolves_and_whose_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
