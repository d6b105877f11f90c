#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/task.h"

static struct task sample(void)
{
    return (struct task){
        .event = { .kind = EVENT_PULL_REQUEST,
                   .action = STR_LIT("synchronize"),
                   .delivery = STR_LIT("d-1"),
                   .head_sha = STR_LIT("0123456789abcdef0123456789abcdef01234567"),
                   .source = STR_LIT("webhook"),
                   .pr = 42,
                   .received_ms = 1700000000123 },
        .repo = STR_LIT("Org/back-end"),
        .level = 3,
        .kind = TASK_DISPATCH,
        .attempt = 2,
        .seq = { 1700000000000, 7, 99 },
        .event_key = STR_LIT("up/s#42"),
    };
}

static void a_task_survives_its_headers(void **state)
{
    (void)state;
    struct task in = sample(), out;
    struct str repos;
    struct headers h;
    struct why why;
    in.maybe_duplicate = MARK_NO_CLAIM;
    in.payload_trimmed = STR_LIT("[\"_links\"]");
    in.kind = TASK_RERUN_ALL;
    in.run_id = STR_LIT("555");
    headers_init(&h);
    task_to_headers(&in, in.repo, &h);
    assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, &why), OK);
    assert_int_equal(out.event.kind, EVENT_PULL_REQUEST);
    assert_int_equal(out.event.pr, 42);
    assert_true(str_is(out.event.delivery, "d-1"));
    assert_true(str_is(out.repo, "Org/back-end"));
    assert_true(str_is(repos, "Org/back-end"));
    assert_int_equal(out.level, 3);
    assert_int_equal(out.kind, TASK_RERUN_ALL);
    assert_true(str_is(out.run_id, "555"));
    assert_int_equal(out.attempt, 2);
    assert_int_equal(task_seq_cmp(&in.seq, &out.seq), 0);
    assert_int_equal(out.maybe_duplicate, MARK_NO_CLAIM);
    assert_true(str_is(headers_get(&h, "maybe_duplicate"), "no_claim"));
    assert_true(str_is(out.payload_trimmed, "[\"_links\"]"));
    assert_true(str_eq(out.event_key, in.event_key));
}

static void a_mark_of_older_records_is_understood(void **state)
{
    (void)state;
    assert_int_equal(task_mark_parse(STR_LIT("claim_expired")), MARK_CLAIM_EXPIRED);
    assert_int_equal(task_mark_parse(STR_LIT("answer_unseen")), MARK_ANSWER_UNSEEN);
    assert_int_equal(task_mark_parse(STR_LIT("1")), MARK_ANSWER_UNSEEN);
    assert_int_equal(task_mark_parse(STR_LIT("of a later version")), MARK_ANSWER_UNSEEN);
    assert_int_equal(task_mark_parse(STR_LIT("")), MARK_NONE);
    assert_int_equal(task_mark_parse(STR_NONE), MARK_NONE);
}

static void headers_read_as_the_contract_says(void **state)
{
    (void)state;
    struct task in = sample();
    struct headers h;
    headers_init(&h);
    task_to_headers(&in, in.repo, &h);
    assert_true(str_is(headers_get(&h, "tier"), "L3"));
    assert_true(str_is(headers_get(&h, "kind"), "dispatch"));
    assert_true(str_is(headers_get(&h, "attempt"), "2"));
    assert_true(str_is(headers_get(&h, "seq"), "1700000000000:7:99"));
    assert_null(headers_get(&h, "maybe_duplicate").ptr);
    assert_null(headers_get(&h, "payload_trimmed").ptr);
    assert_null(headers_get(&h, "run_id").ptr);
}

static void seq_stays_whole_in_a_copy_of_the_headers(void **state)
{
    (void)state;
    struct task in = sample();
    struct headers h, copy;
    headers_init(&h);
    task_to_headers(&in, in.repo, &h);
    headers_copy(&copy, &h);
    memset(&h, 'x', sizeof(h));
    assert_true(str_is(headers_get(&copy, "seq"), "1700000000000:7:99"));
    assert_int_equal(headers_get_i64(&copy, "attempt", 0), 2);
}

static void a_poisonous_header_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
    } bad[] = {
        { "repos", "no-slash" },
        { "repos", "" },
        { "repos", "org/a," },
        { "repos", "org/a,,org/b" },
        { "repos", "org/a, org/b" },
        { "tier", "L5" },
        { "tier", "3" },
        { "kind", "explode" },
        { "seq", "1:2" },
        { "seq", "1:2:3:4" },
        { "seq", "a:2:3" },
        { "seq", "1:-2:3" },
        { "seq", "1:2:3:" },
        { "seq", "1:2147483648:3" },
        { "attempt", "0" },
        { "attempt", "many" },
        { "event", "issues" },
        { "delivery", "not/valid" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct task in = sample(), out;
        struct str repos;
        struct headers h;
        struct why why;
        headers_init(&h);
        task_to_headers(&in, in.repo, &h);
        headers_set(&h, bad[i].name, str_of(bad[i].value));
        if (task_from_record(&out, &repos, in.event_key, &h, &why) != ERR_REFUSE)
            fail_msg("%s=%s was taken", bad[i].name, bad[i].value);
        assert_non_null(strstr(why.text, bad[i].name));
    }
}

static void a_rerun_needs_a_run_and_every_task_a_lane(void **state)
{
    (void)state;
    struct task in = sample(), out;
    struct str repos;
    struct headers h;
    headers_init(&h);
    task_to_headers(&in, in.repo, &h);
    assert_int_equal(task_from_record(&out, &repos, STR_NONE, &h, NULL), ERR_REFUSE);
    headers_set(&h, "kind", STR_LIT("rerun_failed"));
    assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, NULL), ERR_REFUSE);
    headers_set(&h, "run_id", STR_LIT("1"));
    assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, NULL), OK);
}

static void a_dispatch_is_for_up_to_16_downstreams_any_other_for_one(void **state)
{
    (void)state;
    struct task in = sample(), out;
    struct str repos, repo;
    struct headers h;
    struct why why;
    char text[TASK_REPOS_SIZE];
    int len = snprintf(text, sizeof(text), "org/a");
    for (int i = 2; i <= TASK_REPOS_MAX + 1; i++) {
        headers_init(&h);
        task_to_headers(&in, str_of(text), &h);
        assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, &why), OK);
        assert_true(str_is(out.repo, "org/a"));
        int found = 0;
        while (str_split(&repos, ',', &repo))
            found++;
        assert_int_equal(found, i - 1);
        headers_set(&h, "kind", STR_LIT("expand"));
        assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, &why),
                         i == 2 ? OK : ERR_REFUSE);
        len += snprintf(text + len, sizeof(text) - (size_t)len, ",org/b%d", i);
    }
    headers_init(&h);
    task_to_headers(&in, str_of(text), &h);
    assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, &why), ERR_REFUSE);
    assert_non_null(strstr(why.text, "1 to 16"));
}

/* What was written before a record could hold several is in the topics for 7 days. */
static void a_record_of_the_old_form_is_understood(void **state)
{
    (void)state;
    struct task in = sample(), out;
    struct str repos;
    struct headers h;
    struct why why;
    headers_init(&h);
    task_to_headers(&in, STR_NONE, &h);
    headers_put(&h, "repo", STR_LIT("Org/back-end"));
    assert_int_equal(task_from_record(&out, &repos, STR_LIT("Org/back-end|up/s#42"), &h, &why), OK);
    assert_true(str_is(out.repo, "Org/back-end"));
    assert_true(str_is(repos, "Org/back-end"));
    assert_true(str_is(out.event_key, "up/s#42"));
    headers_set(&h, "repo", STR_LIT("a/b,c/d"));
    assert_int_equal(task_from_record(&out, &repos, in.event_key, &h, &why), ERR_REFUSE);
}

static void order_is_by_update_then_by_offset(void **state)
{
    (void)state;
    struct task_seq a = { 10, 0, 5 }, b = { 11, 0, 1 }, c = { 10, 0, 6 };
    assert_true(task_seq_cmp(&a, &b) < 0);
    assert_true(task_seq_cmp(&b, &a) > 0);
    assert_true(task_seq_cmp(&a, &c) < 0);
    assert_int_equal(task_seq_cmp(&a, &a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_survives_its_headers),
        cmocka_unit_test(a_mark_of_older_records_is_understood),
        cmocka_unit_test(headers_read_as_the_contract_says),
        cmocka_unit_test(seq_stays_whole_in_a_copy_of_the_headers),
        cmocka_unit_test(a_poisonous_header_is_named),
        cmocka_unit_test(a_dispatch_is_for_up_to_16_downstreams_any_other_for_one),
        cmocka_unit_test(a_record_of_the_old_form_is_understood),
        cmocka_unit_test(a_rerun_needs_a_run_and_every_task_a_lane),
        cmocka_unit_test(order_is_by_update_then_by_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
