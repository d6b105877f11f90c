/* From facts to hours, against a real redis-server of its own: folded, marked, counted, read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/model/ids.h"
#include "common/view/hours.h"
#include "common/view/jobs.h"
#include "common/view/keys.h"
#include "common/view/lease.h"
#include "reporter/reporter.h"
#include "tests/unit/support/lease_runs_out.h"
#include "tests/unit/support/redis_fixture.h"

#define SHA     "c000000000000000000000000000000000000001"
#define TTL_S   3000000
#define DAY_MS  (24 * (int64_t)HOUR_MS)
#define LATER   60000 /* than any mark of ours is due */
#define LINES   HOURS_TEXT_MAX
#define COUNTED REDIS_ARGS(STR_LIT("ZCARD"), STR_LIT(KEY_TALLY))

static int64_t began_ms; /* of all tests */

/* One fact; those of one name and run are attempts of one job. */
struct one {
    const char *run, *attempt, *conclusion; /* no conclusion: it begins */
    int64_t ago_ms;
    const char *event_type; /* NULL: of a dispatch */
};

static void fold_as(struct redis_fixture *f, struct one one, const char *delivery, const char *job)
{
    const struct view_times times = { .ttl_s = TTL_S, .overdue_ms = 21600000, .quota = 1 << 30 };
    struct result_record fact, merged;
    enum fold_verdict verdict;
    struct buf CLEANUP(buf_clear) key;
    char check[64];
    int64_t at_ms = began_ms - one.ago_ms;
    buf_init(&key, 4096);
    snprintf(check, sizeof(check), "%s-%s", one.run, one.attempt);
    job_key(&key, STR_LIT("Org/Four"), str_of(delivery), STR_LIT("ci"), str_of(job), str_of(check));
    result_record_init(&fact);
    fact.key = str_dup(buf_str(&key));
    fact.state = one.conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS;
    fact.conclusion = mem_dup(one.conclusion);
    fact.repo = mem_dup("Org/Four");
    fact.event_type = mem_dup(one.event_type ? one.event_type : "pull_request");
    fact.pr_number = 7;
    fact.delivery_id = mem_dup(delivery);
    fact.workflow_name = mem_dup("ci");
    fact.job_name = mem_dup(job);
    fact.check_run_id = mem_dup(check);
    fact.run_id = mem_dup(one.run);
    fact.run_attempt = mem_dup(one.attempt);
    assert_int_equal(job_fold_queue(f->redis, &fact, at_ms, &times, NULL), OK);
    assert_int_equal(job_fold_collect(f->redis, &fact, at_ms, &verdict, &merged, NULL), OK);
    result_record_clear(&merged);
    result_record_clear(&fact);
}

static void fold(struct redis_fixture *f, struct one one)
{
    fold_as(f, one, one.event_type ? SHA : "d-1", "build");
}

/* Counts all that is marked, as of so much later. */
static size_t sweep(struct redis_fixture *f, int64_t later_ms)
{
    size_t n = 99;
    assert_int_equal(sweep_tally(f->redis, clock_wall_ms() + later_ms, TTL_S, 100, &n, NULL), OK);
    return n;
}

static int64_t marks(struct redis_fixture *f)
{
    const struct redis_value *v;
    assert_int_equal(redis_call(f->redis, &v, COUNTED, NULL), OK);
    return v->integer;
}

/* The sum of so many hours or days. */
static int64_t count(struct redis_fixture *f, bool by_hour, size_t n, enum run_kind kind,
                     enum figure_count what)
{
    struct hours_point *points = mem_alloc(n, sizeof(*points));
    int64_t sum = 0;
    assert_int_equal(
        hours_read(f->redis, STR_LIT("org/FOUR"), by_hour, clock_wall_ms(), n, points, NULL), OK);
    for (size_t i = 0; i < n; i++)
        sum += points[i].of[kind].count[what];
    free(points);
    return sum;
}

static void assert_counts(struct redis_fixture *f, int64_t done, int64_t ok)
{
    assert_int_equal(count(f, true, 48, RUN_PULL, FIGURE_COMPLETED), done);
    assert_int_equal(count(f, true, 48, RUN_PULL, FIGURE_SUCCESSFUL), ok);
    assert_int_equal(count(f, false, 3, RUN_PULL, FIGURE_COMPLETED), done);
    assert_int_equal(count(f, false, 3, RUN_PULL, FIGURE_SUCCESSFUL), ok);
}

static void what_is_folded_is_counted_once_and_a_rerun_takes_its_place(void **state)
{
    struct redis_fixture *f = *state;
    fold(f, (struct one){ "1", "1", NULL, 9000, NULL });
    assert_int_equal(sweep(f, 0), 0); /* some seconds later */
    fold(f, (struct one){ "1", "1", "failure", 8000, NULL });
    assert_int_equal(marks(f), 1);
    assert_int_equal(sweep(f, LATER), 1);
    assert_int_equal(marks(f), 0);
    assert_counts(f, 1, 0);
    assert_int_equal(count(f, true, 48, RUN_PULL, FIGURE_RUNS), 1);
    fold(f, (struct one){ "1", "2", NULL, 7000, NULL });
    assert_int_equal(sweep(f, LATER), 1);
    assert_counts(f, 0, 0); /* it runs again: its end is not known */
    fold(f, (struct one){ "1", "2", "success", 6000, NULL });
    fold(f, (struct one){ "2", "1", "success", 6000, NULL });
    assert_int_equal(sweep(f, LATER), 1);
    assert_counts(f, 2, 2);
}

static void nightly_runs_are_counted_apart(void **state)
{
    struct redis_fixture *f = *state;
    fold(f, (struct one){ "1", "1", "success", 5000, "nightly" });
    fold(f, (struct one){ "2", "1", "failure", 5000, "periodic" });
    assert_int_equal(sweep(f, LATER), 2); /* each run by itself */
    assert_counts(f, 0, 0);
    assert_int_equal(count(f, true, 48, RUN_SELF, FIGURE_COMPLETED), 2);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_SUCCESSFUL), 1);
}

/* One build of another CI, whose jobs name a delivery each; also one that was dispatched. */
static void a_nightly_run_is_one_run_whatever_its_deliveries_are(void **state)
{
    struct redis_fixture *f = *state;
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g" };
    static const char run[] = "018e5c1a/7b1f:4a54 %"; /* a run id may be any text */
    for (size_t i = 0; i < 7; i++)
        fold_as(f, (struct one){ run, "1", i ? "success" : "failure", 5000, "nightly" }, names[i],
                names[i]);
    fold_as(f, (struct one){ run, "1", "success", 5000, NULL }, "a", "h");
    assert_int_equal(sweep(f, LATER), 2);
    assert_counts(f, 1, 1);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_RUNS), 1);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_COMPLETED), 7);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_SUCCESSFUL), 6);
    fold_as(f, (struct one){ run, "2", "success", 4000, "nightly" }, "again", "a");
    assert_int_equal(sweep(f, LATER), 1);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_RUNS), 1);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_COMPLETED), 7);
    assert_int_equal(count(f, false, 3, RUN_SELF, FIGURE_SUCCESSFUL), 7);
}

static void a_sweeper_that_dies_anywhere_counts_nothing_twice(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    int64_t now_ms = clock_wall_ms() + LATER;
    bool done;
    fold(f, (struct one){ "1", "1", "failure", 8000, NULL });
    assert_int_equal(lease_take_due(f->redis, LEASE_TALLY, now_ms, 100, &list, NULL), OK);
    leases_clear(&list); /* it dies at once */
    assert_int_equal(sweep(f, LATER), 0);
    struct buf CLEANUP(buf_clear) before, CLEANUP(buf_clear) after;
    buf_init(&before, LINES);
    buf_init(&after, LINES);
    leases_end_in(f->redis, "tally", -1);
    assert_int_equal(sweep(f, LATER), 1);
    assert_counts(f, 1, 0);
    /* the next dies when it has counted, before the mark is off */
    fold(f, (struct one){ "2", "1", "success", 7000, NULL });
    assert_int_equal(
        hours_tallied_get(f->redis, STR_LIT("d-1"), STR_LIT("org/four"), &before, NULL), OK);
    int64_t hour = clock_wall_ms() / HOUR_MS;
    struct figures two = { .count = { [FIGURE_COMPLETED] = 2, [FIGURE_SUCCESSFUL] = 1 } };
    hours_put(&after, hour, RUN_PULL, &two);
    for (int i = 0; i < 2; i++) { /* and one that read before it, and writes after it, is refused */
        assert_int_equal(hours_replace(f->redis, STR_LIT("d-1"), STR_LIT("org/four"),
                                       buf_str(&before), buf_str(&after), now_ms, TTL_S, &done,
                                       NULL),
                         OK);
        assert_int_equal(done, i == 0);
    }
    assert_counts(f, 2, 1);
    assert_int_equal(sweep(f, LATER), 1);
    assert_int_equal(marks(f), 0);
    assert_counts(f, 2, 1);
}

static void what_is_folded_while_a_sweeper_counts_is_counted_too(void **state)
{
    struct redis_fixture *f = *state;
    struct leases list;
    fold(f, (struct one){ "1", "1", "failure", 8000, NULL });
    assert_int_equal(
        lease_take_due(f->redis, LEASE_TALLY, clock_wall_ms() + LATER, 100, &list, NULL), OK);
    assert_int_equal(list.members.n, 1);
    fold(f, (struct one){ "2", "1", "success", 7000, NULL });
    assert_int_equal(lease_finish(f->redis, LEASE_TALLY, str_of(list.members.at[0].name),
                                  list.expires_ms, list.members.at[0].at_ms, NULL),
                     OK);
    leases_clear(&list);
    assert_int_equal(marks(f), 1);
    assert_int_equal(sweep(f, LATER), 1);
    assert_counts(f, 2, 1);
}

/* All that was counted, as text; sorted, for a hash has no order. */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump(struct redis_fixture *f, struct buf *to)
{
    const int64_t today = clock_wall_ms() / DAY_MS;
    for (int64_t day = today - 2; day <= today; day++) {
        const struct redis_value *v;
        for (int i = 0; i < 2; i++) {
            struct str key = i ? key_hours(NEW_KEY, STR_LIT("org/four"), day)
                               : key_day(NEW_KEY, STR_LIT("org/four"), day);
            assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("HGETALL"), key), NULL),
                             OK);
            char **lines = mem_alloc(v->n + 1, sizeof(*lines));
            for (size_t at = 0; at + 1 < v->n; at += 2) {
                struct buf line;
                buf_init(&line, 1000);
                buf_printf(&line, "%s %.*s %.*s\n", key.ptr, STR_ARG(v->items[at].text),
                           STR_ARG(v->items[at + 1].text));
                lines[at / 2] = buf_take(&line, NULL);
            }
            qsort(lines, v->n / 2, sizeof(*lines), by_text);
            for (size_t at = 0; at < v->n / 2; at++) {
                buf_puts(to, lines[at]);
                free(lines[at]);
            }
            free(lines);
        }
    }
}

/* Facts of the same times in any order, some of them twice, counted at any moment. */
static void any_order_and_number_of_facts_and_counts_end_in_the_same_hours(void **state)
{
    struct redis_fixture *f = *state;
    static const struct one facts[] = {
        { "1", "1", NULL, 9000000, NULL },       { "1", "1", "failure", 7000000, NULL },
        { "1", "2", NULL, 6000000, NULL },       { "1", "2", "success", 90000, NULL },
        { "2", "1", "cancelled", 100000, NULL }, { "2", "1", NULL, 99000000, NULL },
    };
    enum { N = sizeof(facts) / sizeof(facts[0]) };
    struct buf CLEANUP(buf_clear) wanted, CLEANUP(buf_clear) is;
    uint32_t seed = 5;
    buf_init(&wanted, LINES);
    buf_init(&is, LINES);
    for (int round = 0; round < 12; round++) {
        redis_fixture_consistent(state);
        for (size_t i = 0; i < 2 * N; i++) {
            seed = seed * 1664525u + 1013904223u;
            /* each at least once: from a place on, then some again */
            fold(f, facts[i < N ? (i * 5 + (size_t)round) % N : (seed >> 16) % N]);
            if ((seed >> 20) % 3 == 0)
                (void)sweep(f, LATER);
        }
        (void)sweep(f, LATER);
        buf_reset(&is);
        dump(f, &is);
        if (round == 0)
            buf_put(&wanted, buf_str(&is));
        assert_true(wanted.len > 0);
        assert_string_equal(buf_str(&is).ptr, buf_str(&wanted).ptr);
    }
    assert_counts(f, 2, 1);
}

static void hours_and_days_end_with_their_time_and_older_ones_are_not_written(void **state)
{
    struct redis_fixture *f = *state;
    struct buf CLEANUP(buf_clear) lines;
    const struct figures one = { .count = { [FIGURE_COMPLETED] = 1 } };
    static const int64_t ago[] = { 0, 7, 8, 89, 90 };
    int64_t now_ms = clock_wall_ms(), today = now_ms / DAY_MS;
    bool done = false;
    buf_init(&lines, LINES);
    for (size_t i = 5; i-- > 0;)
        hours_put(&lines, (today - ago[i]) * DAY_HOURS + 5, RUN_PULL, &one);
    assert_int_equal(hours_replace(f->redis, STR_LIT("d"), STR_LIT("org/four"), STR_LIT(""),
                                   buf_str(&lines), now_ms, TTL_S, &done, NULL),
                     OK);
    assert_true(done);
    for (size_t i = 0; i < 5; i++)
        for (int kind = 0; kind < 2; kind++) {
            const struct redis_value *v;
            int64_t day = today - ago[i], kept = kind ? HOURS_DAYS : DAYS_KEPT;
            struct str name = kind ? key_hours(NEW_KEY, STR_LIT("org/four"), day)
                                   : key_day(NEW_KEY, STR_LIT("org/four"), day);
            assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(STR_LIT("TTL"), name), NULL), OK);
            int64_t left = (day + kept) * DAY_MS / 1000 - now_ms / 1000;
            if (ago[i] < kept)
                assert_in_range(v->integer, left - 5, left + 5);
            else
                assert_int_equal(v->integer, -2);
        }
    assert_int_equal(count(f, false, 90, RUN_PULL, FIGURE_COMPLETED), 4);
}

/* The step in Redis would hold up everybody. */
static void a_delivery_with_too_many_lines_is_not_counted(void **state)
{
    struct redis_fixture *f = *state;
    static char lines[HOURS_TEXT_MAX + 2];
    const struct redis_value *v;
    memset(lines, '1', HOURS_TEXT_MAX + 1);
    fold(f, (struct one){ "1", "1", "success", 5000, NULL });
    assert_int_equal(
        redis_call(f->redis, &v,
                   REDIS_ARGS(STR_LIT("SET"),
                              key_tallied(NEW_KEY, STR_LIT("d-1"), STR_LIT("org/four")),
                              str_of(lines)),
                   NULL),
        OK);
    assert_int_equal(sweep(f, LATER), 1);
    assert_int_equal(marks(f), 0);
    assert_counts(f, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_folded_is_counted_once_and_a_rerun_takes_its_place,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_delivery_with_too_many_lines_is_not_counted,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(nightly_runs_are_counted_apart, redis_fixture_consistent),
        cmocka_unit_test_setup(a_nightly_run_is_one_run_whatever_its_deliveries_are,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(a_sweeper_that_dies_anywhere_counts_nothing_twice,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(what_is_folded_while_a_sweeper_counts_is_counted_too,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(any_order_and_number_of_facts_and_counts_end_in_the_same_hours,
                               redis_fixture_consistent),
        cmocka_unit_test_setup(hours_and_days_end_with_their_time_and_older_ones_are_not_written,
                               redis_fixture_consistent),
    };
    began_ms = clock_wall_ms();
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}
