#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "common/model/known_failure.h"
#include "reporter/oncall.h"

#define JOBS_MAX 80

/* A downstream's jobs on one commit. */
struct world {
    struct result_record records[JOBS_MAX];
    struct oncall_job jobs[JOBS_MAX];
    struct str oncalls[4];
    struct oncall_view view;
    struct buf text;
    enum oncall_word word;
};

static int setup(void **state)
{
    struct world *w = mem_alloc(1, sizeof(*w));
    w->oncalls[0] = STR_LIT("carol");
    w->view = (struct oncall_view){ .repo = STR_LIT("org/four"),
                                    .head_sha = STR_LIT("0123456789abcdef0123456789abcdef01234567"),
                                    .oncalls = w->oncalls,
                                    .n_oncalls = 1,
                                    .jobs = w->jobs };
    buf_init(&w->text, ONCALL_TEXT_MAX);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < w->view.n_jobs; i++)
        result_record_clear(&w->records[i]);
    buf_clear(&w->text);
    free(w);
    return 0;
}

/* conclusion NULL: in progress. */
static struct result_record *job_add(struct world *w, const char *name, const char *run_id,
                                     int64_t began_ms, const char *conclusion)
{
    struct result_record *job = &w->records[w->view.n_jobs];
    result_record_init(job);
    job->state = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS;
    job->conclusion = mem_dup(conclusion);
    job->workflow_name = mem_dup("ci");
    job->job_name = mem_dup(name);
    job->run_id = mem_dup(run_id);
    job->run_attempt = mem_dup("1");
    job->in_progress_ms = began_ms;
    w->jobs[w->view.n_jobs++] = (struct oncall_job){ job, "https://github.com/org/four/runs/1" };
    return job;
}

static const char *say(struct world *w)
{
    buf_reset(&w->text);
    w->word = oncall_text(&w->view, &w->text);
    assert_false(buf_full(&w->text));
    return w->text.len > 0 ? buf_str(&w->text).ptr : "";
}

static bool says(struct world *w, const char *needle)
{
    return str_find_str(buf_str(&w->text), str_of(needle)) >= 0;
}

static size_t times(const char *text, const char *needle)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, needle)); at++)
        n++;
    return n;
}

static void a_failure_asks_the_on_calls(void **state)
{
    struct world *w = *state;
    w->oncalls[1] = STR_LIT("pytorch/dev-infra");
    w->view.n_oncalls = 2;
    job_add(w, "build", "1", 1000, "failure");
    const char *text = say(w);
    assert_int_equal(w->word, ONCALL_FAILING);
    assert_ptr_equal(strstr(text, "<!-- crcr-oncall:org/four -->"), text);
    assert_true(says(w, "@carol, @pytorch/dev-infra: 1 job failed on `0123456789`"));
    assert_true(
        says(w, "<code>build</code> | failure | [log](<https://github.com/org/four/runs/1>)"));
}

static void several_jobs_have_a_row_each_and_those_that_pass_have_none(void **state)
{
    struct world *w = *state;
    job_add(w, "one", "1", 1000, "failure");
    job_add(w, "two", "1", 1000, "success");
    job_add(w, "three", "1", 1000, "cancelled");
    job_add(w, "four", "1", 1000, NULL)->state = JOB_TIMED_OUT;
    job_add(w, "five", "1", 1000, NULL);
    say(w);
    assert_true(says(w, "3 jobs failed"));
    assert_true(says(w, "<code>one</code> | failure"));
    assert_true(says(w, "<code>three</code> | cancelled"));
    assert_true(says(w, "<code>four</code> | timed_out"));
    assert_false(says(w, "<code>two</code>"));
    assert_false(says(w, "<code>five</code>"));
}

static void conclusions_that_are_no_failure_ask_nobody(void **state)
{
    static const char *const fine[] = { "success", "neutral", "skipped", "action_required",
                                        "stale" };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        job_add(w, fine[i], "1", 1000, fine[i]);
    say(w);
    assert_int_equal(w->word, ONCALL_RESOLVED);
    assert_int_equal(times(buf_str(&w->text).ptr, "@"), 0);
}

static void all_passed_is_resolved_and_the_same_on_each_commit(void **state)
{
    struct world *w = *state;
    char first[17], second[17];
    job_add(w, "build", "1", 1000, "success");
    say(w);
    assert_int_equal(w->word, ONCALL_RESOLVED);
    assert_true(says(w, "<!-- crcr-oncall:org/four -->"));
    assert_true(says(w, "Resolved"));
    oncall_digest(buf_str(&w->text), first);
    w->view.head_sha = STR_LIT("fedcba9876543210");
    job_add(w, "test", "1", 1000, "success");
    say(w);
    oncall_digest(buf_str(&w->text), second);
    assert_string_equal(first, second);
}

static void a_job_that_runs_resolves_nothing_yet(void **state)
{
    struct world *w = *state;
    job_add(w, "build", "1", 1000, "success");
    job_add(w, "test", "1", 1000, NULL);
    say(w);
    assert_int_equal(w->word, ONCALL_NOTHING);
    assert_int_equal(w->text.len, 0);
}

static void of_several_runs_of_a_job_the_newest_counts(void **state)
{
    struct world *w = *state;
    job_add(w, "build", "2", 5000, "success");
    job_add(w, "build", "1", 1000, "failure");
    say(w);
    assert_int_equal(w->word, ONCALL_RESOLVED);
    job_add(w, "build", "3", 9000, NULL);
    say(w);
    assert_int_equal(w->word, ONCALL_NOTHING);
}

static void of_several_attempts_the_highest_counts_whenever_it_began(void **state)
{
    struct world *w = *state;
    job_add(w, "build", "1", 9000, "success");
    struct result_record *again = job_add(w, "build", "1", 1000, "failure");
    free(again->run_attempt);
    again->run_attempt = mem_dup("10");
    say(w);
    assert_int_equal(w->word, ONCALL_FAILING);
}

static void the_legs_of_a_matrix_outdo_each_other_never(void **state)
{
    struct world *w = *state;
    job_add(w, "test", "1", 1000, "failure");
    job_add(w, "test", "1", 2000, "success");
    job_add(w, "test", "1", 3000, "failure");
    say(w);
    assert_int_equal(w->word, ONCALL_FAILING);
    assert_true(says(w, "2 jobs failed"));
}

static void without_on_calls_or_jobs_nothing_is_said(void **state)
{
    struct world *w = *state;
    say(w);
    assert_int_equal(w->word, ONCALL_NOTHING);
    job_add(w, "build", "1", 1000, "failure");
    w->view.n_oncalls = 0;
    say(w);
    assert_int_equal(w->word, ONCALL_NOTHING);
}

static void names_of_a_downstream_mention_nobody_and_format_nothing(void **state)
{
    struct world *w = *state;
    struct result_record *job = job_add(
        w, "@pytorch/everyone [x](http://e) | `a` --> </code> <!-- crcr-oncall:org/other -->", "1",
        1000, "failure");
    free(job->workflow_name);
    job->workflow_name = mem_dup("@alice\n\n@bob #1 <b>\xe2\x80\xae");
    w->jobs[0].url = "https://ci/@dave|x";
    const char *text = say(w);
    assert_int_equal(times(text, "@"), 1); /* carol, whom the allowlist names */
    assert_int_equal(times(text, "<!--"), 1);
    assert_int_equal(times(text, "-->"), 1);
    assert_null(strstr(text, "[x]"));
    assert_null(strstr(text, "<b>"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_null(strstr(text, "#1 "));
    assert_int_equal(times(text, "</code>"), 3);
    assert_int_equal(times(text, "\n|"), 3); /* head, line and one row */
}

static void an_on_call_that_is_no_login_is_shown_and_not_mentioned(void **state)
{
    static const char *const odd[] = { "two words", "a/b/c", "/x", "x@y", "" };
    struct world *w = *state;
    job_add(w, "build", "1", 1000, "failure");
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        w->oncalls[0] = str_of(odd[i]);
        assert_int_equal(times(say(w), "@"), 0);
    }
}

static void very_many_failures_are_counted(void **state)
{
    struct world *w = *state;
    char name[300];
    for (int i = 0; i < JOBS_MAX; i++) {
        memset(name, '|', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        name[0] = (char)('0' + i / 10);
        name[1] = (char)('0' + i % 10);
        job_add(w, name, "1", 1000, "failure");
    }
    say(w);
    assert_true(says(w, "80 jobs failed"));
    assert_true(says(w, " more.\n"));
    assert_true(w->text.len < ONCALL_TEXT_MAX);
}

/* Its figures change with every report of another job: the comment is not edited for them. */
static void a_failure_says_whether_it_is_known(void **state)
{
    struct world *w = *state;
    char first[17], later[17], other[17];
    struct result_record *job = job_add(w, "build", "1", 1000, "failure");
    job->known = mem_alloc(1, sizeof(*job->known));
    *job->known = (struct known_failure){ .reason = KNOWN_OTHERS, .others = 4 };
    oncall_digest(str_of(say(w)), first);
    assert_true(says(w, "| failure · <!-- known:other_pull_requests -->fails on 4 other pull "
                        "requests in 24 h<!-- --> | [log]"));
    job->known->others = 5;
    oncall_digest(str_of(say(w)), later);
    assert_true(says(w, "fails on 5 other"));
    assert_string_equal(first, later);
    job->known->reason = KNOWN_ONLY_HERE;
    oncall_digest(str_of(say(w)), other);
    assert_string_not_equal(first, other);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failure_asks_the_on_calls),
        TEST(several_jobs_have_a_row_each_and_those_that_pass_have_none),
        TEST(conclusions_that_are_no_failure_ask_nobody),
        TEST(all_passed_is_resolved_and_the_same_on_each_commit),
        TEST(a_job_that_runs_resolves_nothing_yet),
        TEST(of_several_runs_of_a_job_the_newest_counts),
        TEST(of_several_attempts_the_highest_counts_whenever_it_began),
        TEST(the_legs_of_a_matrix_outdo_each_other_never),
        TEST(without_on_calls_or_jobs_nothing_is_said),
        TEST(names_of_a_downstream_mention_nobody_and_format_nothing),
        TEST(an_on_call_that_is_no_login_is_shown_and_not_mentioned),
        TEST(very_many_failures_are_counted),
        TEST(a_failure_says_whether_it_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
