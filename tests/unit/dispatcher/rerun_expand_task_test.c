/* A task of kind expand, from its call to its end: what it asks for, what it becomes, and what
 * follows. GitHub, the view and the sender are fakes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/github/check_runs.h"
#include "common/view/epoch.h"
#include "common/view/jobs.h"
#include "dispatcher/sender.h"

#define SHA     "0123456789abcdef0123456789abcdef01234567"
#define SENT_MS 1795231200007LL
#define OUR_APP 4242

static const char asked_by[] = "{\"repository\":{\"full_name\":\"pytorch/pytorch\"}}";
static const char yaml[] = "L3:\n  device: { org/three: [alice] }\nL4:\n  - org/four: bob\n";

/* ---- the world, and what was asked of it ---- */

static struct {
    char path[256]; /* of the call to GitHub that is under way; "": there is none */
    github_answered_fn *github_done;
    void *github_opaque;
    enum err github;    /* refuses to start calls */
    int64_t epoch[2];   /* before the view is read, and after */
    size_t epoch_reads; /* of these */
    enum err view;
    const char *run_id, *delivery; /* of the one job in the view; NULL: there is none */
    void (*stored)(void *opaque);
    void *stored_opaque;
    char posted[256]; /* "rerun_all org/four 9; " */
    struct task_seq seq;
    size_t skipped;
    struct dispatch_decision decision; /* the end: task_decided */
    char reason[256];
    struct github_answer answer; /* or task_answered */
    size_t ends;
} world;
static struct allowlist_version version;
static struct sender s;
static struct dispatcher dispatcher;
static struct task_in_hand t;
static struct work work;
static struct record record;

enum err github_start(struct github *g, const struct github_request *request,
                      github_answered_fn *done, void *opaque, struct why *why)
{
    (void)g;
    if (world.github)
        return why_set(why, world.github, "it cannot be asked");
    str_copy(world.path, sizeof(world.path), str_of(request->path));
    world.github_done = done;
    world.github_opaque = opaque;
    return OK;
}

struct github_answer github_unsent(struct github *g, enum err err, const struct why *why)
{
    (void)g;
    return (struct github_answer){ .err = err, .reason = why->text };
}

const char *github_app_id(const struct github *g)
{
    (void)g;
    return "4242";
}

enum err github_write(struct github *g, const struct github_request *request, struct buf *body,
                      const char *what, github_written_fn *done, void *opaque, struct why *why)
{
    (void)g;
    (void)request;
    (void)body;
    (void)what;
    (void)done;
    (void)opaque;
    (void)why;
    fail();
    return OK;
}

enum err view_epoch_get(struct redis *r, int64_t *ret, struct why *why)
{
    (void)r;
    *ret = world.epoch[world.epoch_reads++];
    return world.view ? why_set(why, world.view, "Redis is unavailable") : OK;
}

enum err jobs_of_head(struct redis *r, struct str sha, struct str repo, struct job_list *ret,
                      struct why *why)
{
    (void)r;
    (void)why;
    assert_true(str_is(sha, SHA) && str_is(repo, "org/four"));
    if (!world.run_id)
        return OK;
    ret->at = calloc(1, sizeof(*ret->at));
    ret->n = 1;
    result_record_init(ret->at);
    ret->at->run_id = strdup(world.run_id);
    ret->at->workflow_name = strdup("CI");
    ret->at->delivery_id = strdup(world.delivery);
    ret->at->event_type = strdup("pull_request");
    ret->at->pr_number = 17;
    return OK;
}

void job_list_clear(struct job_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        result_record_clear(&list->at[i]);
    free(list->at);
    *list = (struct job_list){ NULL, 0 };
}

const struct allowlist_version *allowlist_feed_get(struct allowlist_feed *f)
{
    (void)f;
    return &version;
}

void allowlist_feed_release(struct allowlist_feed *f, const struct allowlist_version *v)
{
    (void)f;
    (void)v;
}

bool rerun_is_of_other_ci(const struct task_in_hand *of, const struct route *rerun)
{
    (void)of;
    (void)rerun;
    return false;
}

void post_tasks(struct work *to, const struct task *task, struct str repos, size_t n,
                struct str value)
{
    size_t len = strlen(world.posted);
    assert_ptr_equal(to, &work);
    assert_int_equal(n, 1);
    snprintf(world.posted + len, sizeof(world.posted) - len, "%s %.*s %.*s; ",
             task_kind_name(task->kind), STR_ARG(repos),
             STR_ARG(task->kind == TASK_DISPATCH ? task->event_key : task->run_id));
    if (task->kind != TASK_DISPATCH)
        return;
    assert_true(str_is(task->event.action, "reopened"));
    assert_non_null(strstr(value.ptr, "\"reopened\""));
    world.seq = task->seq;
}

void outcome_now(struct outcome *ret, const struct task *task, enum outcome_kind kind,
                 const char *reason)
{
    (void)reason;
    outcome_init(ret, task);
    ret->outcome = kind;
}

void post_outcome(struct work *to, const struct outcome *outcome)
{
    (void)to;
    assert_int_equal(outcome->outcome, OUTCOME_SKIPPED);
    world.skipped++;
}

void work_then(struct work *of, void (*then)(void *opaque), void *opaque)
{
    assert_ptr_equal(of, &work);
    world.stored = then;
    world.stored_opaque = opaque;
}

void task_decided(struct task_in_hand *of, const struct dispatch_decision *decision)
{
    assert_ptr_equal(of, &t);
    assert_null(t.expand); /* it is over */
    world.decision = *decision;
    str_copy(world.reason, sizeof(world.reason), str_of(decision->reason));
    world.ends++;
}

void task_answered(void *opaque, const struct github_answer *answer)
{
    assert_ptr_equal(opaque, &t);
    assert_null(t.expand);
    world.answer = *answer;
    world.ends++;
}

/* ---- a task that is being called ---- */

static int setup(void **state)
{
    struct allowlist *list;
    (void)state;
    memset(&world, 0, sizeof(world));
    world.epoch[0] = world.epoch[1] = 1;
    assert_int_equal(allowlist_parse(&list, "a.yml", str_of(yaml), NULL), OK);
    version.list = list;
    dispatcher = (struct dispatcher){ .app_number = OUR_APP, .max_age_ms = 1000000 };
    s = (struct sender){ .d = &dispatcher };
    record = (struct record){ .value = str_of(asked_by) };
    work = (struct work){ .record = &record };
    t = (struct task_in_hand){ .s = &s,
                               .work = &work,
                               .state = TASK_CALLING,
                               .task = { .event = { .kind = EVENT_CHECK_RUN,
                                                    .delivery = STR_LIT("pressed"),
                                                    .head_sha = STR_LIT(SHA),
                                                    .received_ms = clock_wall_ms() },
                                         .kind = TASK_EXPAND,
                                         .attempt = 3,
                                         .seq = { 5, 2, 99 },
                                         .event_key = STR_LIT("pytorch/pytorch@" SHA) } };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    expand_task_free(t.expand);
    allowlist_free((struct allowlist *)version.list);
    return 0;
}

static void expand_aggregate_check(const char *id)
{
    t.task.repo = STR_LIT("org/four");
    t.task.level = 4;
    t.task.run_id = str_of(id);
    expand_task_start(&t);
}

static void expand_check_suite(void)
{
    t.task.repo = STR_LIT("pytorch/pytorch");
    t.task.level = 4;
    t.task.run_id = STR_LIT("118578147");
    expand_task_start(&t);
    assert_non_null(strstr(world.path, "/check-suites/118578147/"));
}

static void github_says(enum err err, const char *body)
{
    const struct github_answer answer = { .err = err,
                                          .status = err ? 0 : 200,
                                          .body = str_of(body),
                                          .sent_ms = SENT_MS,
                                          .reason = err ? "no answer" : NULL };
    assert_true(world.path[0]);
    world.github_done(world.github_opaque, &answer);
}

static void all_is_stored(void)
{
    assert_int_equal(world.ends, 0);
    assert_non_null(world.stored);
    world.stored(world.stored_opaque);
}

static void it_ended(enum dispatch_next next, enum outcome_kind outcome, const char *reason)
{
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.decision.next, next);
    assert_int_equal(world.decision.outcome, outcome);
    assert_int_equal(world.decision.attempt, 3); /* none is spent */
    assert_non_null(strstr(world.reason, reason));
}

#define PULL(state, sha)                                                                           \
    "{\"number\":17,\"state\":\"" state "\",\"updated_at\":\"2026-11-21T04:00:00Z\","              \
    "\"head\":{\"sha\":\"" sha "\"}}"

/* ---- an aggregate check ---- */

static void without_a_run_the_pull_request_is_dispatched_afresh(void **state)
{
    (void)state;
    expand_aggregate_check("d:first:17");
    assert_string_equal(world.path, "/repos/pytorch/pytorch/pulls/17");
    github_says(OK, PULL("open", SHA));
    assert_string_equal(world.posted, "dispatch org/four pytorch/pytorch#17; ");
    assert_true(world.seq.updated_ms == 1795233600000);
    assert_int_equal(world.seq.offset, 99);
    all_is_stored();
    it_ended(DISPATCH_END, OUTCOME_DISPATCHED, "");
    assert_int_equal(t.outcome.http_status, 200);
    assert_true(t.outcome.at_ms == SENT_MS);
}

static void of_a_pull_request_that_is_not_as_it_was_nothing_is_sent(void **state)
{
    static const struct {
        const char *pull, *reason;
    } table[] = {
        { PULL("closed", SHA), "closed" },
        { PULL("open", "fedcba98"), "moved on to fedcba98" },
    };
    for (size_t i = 0; i < 2; i++) {
        teardown(state);
        setup(state);
        expand_aggregate_check("d:first:17");
        github_says(OK, table[i].pull);
        it_ended(DISPATCH_END, OUTCOME_SKIPPED, table[i].reason);
        assert_string_equal(world.posted, "");
    }
}

static void what_is_no_pull_request_goes_to_the_dlq(void **state)
{
    (void)state;
    expand_aggregate_check("d:first:17");
    github_says(OK, "[]");
    it_ended(DISPATCH_DEAD, OUTCOME_FAILED, "not the pull request");
    assert_string_equal(world.decision.dlq_class, "refused");
}

static void known_runs_are_repeated_without_asking_github(void **state)
{
    (void)state;
    world.run_id = "9";
    world.delivery = "first";
    expand_aggregate_check("d:first:17");
    assert_string_equal(world.path, "");
    assert_string_equal(world.posted, "rerun_all org/four 9; ");
    all_is_stored();
    it_ended(DISPATCH_END, OUTCOME_DISPATCHED, "");
}

static void what_the_view_lacks_says_nothing_while_it_is_rebuilt(void **state)
{
    static const struct {
        int64_t before, after;
        enum err err;
        const char *reason;
    } table[] = {
        { 0, 0, OK, "being rebuilt" },
        { 1, 2, OK, "being rebuilt" },
        { 1, 0, OK, "being rebuilt" },
        { 1, 1, ERR_RETRY, "Redis is unavailable" },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        teardown(state);
        setup(state);
        world.epoch[0] = table[i].before;
        world.epoch[1] = table[i].after;
        world.view = table[i].err;
        expand_aggregate_check("d:first:17");
        it_ended(DISPATCH_WAIT, OUTCOME_WAITING, table[i].reason);
        assert_true(world.decision.until_ms <= clock_mono_ms() + DISPATCH_IN_HAND_MS);
    }
}

static void an_aggregate_that_names_no_delivery_goes_to_the_dlq(void **state)
{
    (void)state;
    expand_aggregate_check("none");
    it_ended(DISPATCH_DEAD, OUTCOME_FAILED, "names no delivery");
}

/* ---- a check suite ---- */

static const char suite[] =
    "{\"check_runs\":["
    "{\"id\":1,\"app\":{\"id\":4242},\"name\":\"crcr/org/four/CI/a\","
    "\"external_id\":\"9:17\"},"
    "{\"id\":2,\"app\":{\"id\":4242},\"name\":\"crcr/org/four/CI/b\","
    "\"external_id\":\"9:17\"},"
    "{\"id\":3,\"app\":{\"id\":7},\"name\":\"lint\",\"external_id\":\"\"}]}";

static void a_suite_becomes_one_task_a_run_and_ends_when_that_is_stored(void **state)
{
    (void)state;
    expand_check_suite();
    github_says(OK, suite);
    assert_string_equal(world.posted, "rerun_all org/four 9; ");
    all_is_stored();
    it_ended(DISPATCH_END, OUTCOME_DISPATCHED, "");
    assert_int_equal(t.outcome.http_status, 200);
}

static void a_suite_without_a_check_of_ours_is_skipped(void **state)
{
    (void)state;
    expand_check_suite();
    github_says(OK, "{\"check_runs\":[]}");
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.decision.next, DISPATCH_END);
    assert_int_equal(world.decision.outcome, OUTCOME_SKIPPED);
    assert_true(*world.reason);
    assert_string_equal(world.posted, "");
}

static void without_an_allowlist_a_suite_waits(void **state)
{
    const struct allowlist *list = version.list;
    (void)state;
    expand_check_suite();
    version.list = NULL;
    github_says(OK, suite);
    version.list = list;
    it_ended(DISPATCH_WAIT, OUTCOME_WAITING, "no allowlist");
}

/* ---- what fails ---- */

static void a_question_without_an_answer_had_no_effect(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        teardown(state);
        setup(state);
        if (i)
            expand_check_suite();
        else
            expand_aggregate_check("d:first:17");
        github_says(ERR_UNKNOWN, "");
        assert_int_equal(world.ends, 1);
        assert_int_equal(world.answer.err, ERR_RETRY);
    }
}

static void a_question_that_cannot_be_asked_is_answered_at_once(void **state)
{
    (void)state;
    world.github = ERR_RETRY;
    expand_aggregate_check("d:first:17");
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.answer.err, ERR_RETRY);
}

/* The rest is for the sanitizer: teardown frees it. */
static void what_is_forgotten_under_way_leaves_nothing_behind(void **state)
{
    (void)state;
    expand_aggregate_check("d:first:17");
    assert_non_null(t.expand);
    assert_int_equal(world.ends, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_run_the_pull_request_is_dispatched_afresh),
        TEST(of_a_pull_request_that_is_not_as_it_was_nothing_is_sent),
        TEST(what_is_no_pull_request_goes_to_the_dlq),
        TEST(known_runs_are_repeated_without_asking_github),
        TEST(what_the_view_lacks_says_nothing_while_it_is_rebuilt),
        TEST(an_aggregate_that_names_no_delivery_goes_to_the_dlq),
        TEST(a_suite_becomes_one_task_a_run_and_ends_when_that_is_stored),
        TEST(a_suite_without_a_check_of_ours_is_skipped),
        TEST(without_an_allowlist_a_suite_waits),
        TEST(a_question_without_an_answer_had_no_effect),
        TEST(a_question_that_cannot_be_asked_is_answered_at_once),
        TEST(what_is_forgotten_under_way_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
