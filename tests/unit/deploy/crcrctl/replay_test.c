/* Which records a replay writes again, and as what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deploy/crcrctl/replay.h"

static struct replay_filter filter;

static int end(void **state)
{
    (void)state;
    table_clear(&filter.seen);
    return 0;
}

static void start(struct replay_filter wanted)
{
    filter = wanted;
    if (!filter.until_ms)
        filter.until_ms = INT64_MAX;
}

static struct record *at(int32_t partition, int64_t offset, const char *delivery)
{
    static struct record r;
    r = (struct record){ .at = { "crcr.events", partition, offset },
                         .timestamp_ms = 1000 + offset };
    headers_init(&r.headers);
    headers_put(&r.headers, "delivery", str_of(delivery));
    headers_put(&r.headers, "pr", STR_LIT("7"));
    headers_put(&r.headers, "source", STR_LIT("webhook"));
    return &r;
}

/* A record that the replay id wrote, of partition 0, offset of. */
static struct record *written(int64_t offset, const char *id, const char *of)
{
    struct record *r = at(0, offset, "d");
    headers_put(&r->headers, "replay", str_of(id));
    headers_put(&r->headers, "replay_of", str_of(of));
    return r;
}

static void a_delivery_that_was_stored_twice_is_replayed_once(void **state)
{
    (void)state;
    start((struct replay_filter){ .pr = 7, .events = true });
    for (int pass = 0; pass < 2; pass++) {
        table_clear(&filter.seen);
        assert_true(replay_wants(&filter, at(0, 1, "d-1")));
        assert_false(replay_wants(&filter, at(0, 2, "d-1")));
        assert_true(replay_wants(&filter, at(0, 3, "d-2")));
    }
}

static void every_callback_of_a_delivery_is_replayed(void **state)
{
    (void)state;
    start((struct replay_filter){ .delivery = STR_LIT("d-1") });
    assert_true(replay_wants(&filter, at(0, 1, "d-1")));
    assert_true(replay_wants(&filter, at(0, 2, "d-1")));
    assert_false(replay_wants(&filter, at(0, 3, "d-2")));
}

static void a_replay_is_never_replayed(void **state)
{
    (void)state;
    start((struct replay_filter){ .pr = 7 });
    assert_true(replay_wants(&filter, at(0, 1, "d")));
    assert_false(replay_wants(&filter, written(2, "another", "0@1")));
}

static void filters_are_anded_and_until_is_out(void **state)
{
    (void)state;
    start((struct replay_filter){ .pr = 7, .since_ms = 1002, .until_ms = 1004 });
    assert_false(replay_wants(&filter, at(0, 1, "d")));
    assert_true(replay_wants(&filter, at(0, 2, "d")));
    assert_true(replay_wants(&filter, at(0, 3, "d")));
    assert_false(replay_wants(&filter, at(0, 4, "d")));
    struct record *other = at(0, 3, "d");
    headers_set(&other->headers, "pr", STR_LIT("8"));
    assert_false(replay_wants(&filter, other));
}

static void an_event_is_written_as_a_replay_of_its_place(void **state)
{
    (void)state;
    struct headers h;
    replay_headers(at(3, 17, "d-1"), STR_LIT("id-1"), true, false, &h);
    assert_true(str_is(headers_get(&h, "source"), "replay"));
    assert_true(str_is(headers_get(&h, "replay"), "id-1"));
    assert_true(str_is(headers_get(&h, "replay_of"), "3@17"));
    assert_true(str_is(headers_get(&h, "delivery"), "d-1"));
    assert_null(headers_get(&h, "again").ptr);
    replay_headers(at(3, 17, "d-1"), STR_LIT("id-1"), true, true, &h);
    assert_true(str_is(headers_get(&h, "again"), "id-1"));
    replay_headers(at(3, 17, "d-1"), STR_LIT("id-1"), false, false, &h);
    assert_true(str_is(headers_get(&h, "source"), "webhook"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
    const struct CMUnitTest tests[] = {
        TEST(a_delivery_that_was_stored_twice_is_replayed_once),
        TEST(every_callback_of_a_delivery_is_replayed),
        TEST(a_replay_is_never_replayed),
        TEST(filters_are_anded_and_until_is_out),
        TEST(an_event_is_written_as_a_replay_of_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
