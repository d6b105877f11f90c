/* A role whose worker is a fake, for the tests of router, sender, delay and task_in_hand: what is
 * asked of it is noted in order, and its loop is the test's scenario. Include it after cmocka. */
#ifndef CRCR_TESTS_ROLE_FAKE_H
#define CRCR_TESTS_ROLE_FAKE_H

#include "common/worker/worker.h"
#include "dispatcher/metrics.h"

static struct {
    char said[4096];  /* in order: "put dispatch.l2; done; " */
    char started[64]; /* the same, before the loop */
    struct worker_options options;
    void (*scenario)(void);
    struct metrics *metrics;
    bool waiting;
    enum err new_err, run_err; /* of worker_new, worker_run */
} fake;

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    size_t len = strlen(fake.said);
    va_list args;
    va_start(args, format);
    vsnprintf(fake.said + len, sizeof(fake.said) - len, format, args);
    va_end(args);
}

static inline void role_fake_init(void (*scenario)(void))
{
    memset(&fake, 0, sizeof(fake));
    fake.scenario = scenario;
    fake.metrics = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
}

/* A test that runs in the loop: run() gets it as the scenario. */
#define LOOP_TEST(f)                                                                               \
    {                                                                                              \
        .name = #f, .test_func = run, .initial_state = (void *)(uintptr_t)f                        \
    }
#define SCENARIO(state) ((void (*)(void))(uintptr_t) * (state))

enum err worker_new(struct worker **ret, const struct worker_options *options, struct why *why)
{
    (void)ret;
    fake.options = *options;
    return fake.new_err ? why_set(why, fake.new_err, "a topic is missing") : OK;
}

enum err worker_read(struct worker *w, struct why *why)
{
    (void)w;
    (void)why;
    say("read; ");
    return OK;
}

enum err worker_run(struct worker *w, struct why *why)
{
    (void)w;
    str_copy(fake.started, sizeof(fake.started), str_of(fake.said));
    fake.said[0] = 0;
    fake.scenario();
    return fake.run_err ? why_set(why, fake.run_err, "Kafka cannot go on") : OK;
}

void worker_free(struct worker *w)
{
    (void)w;
    say("worker_free; ");
}

void work_done(struct work *work)
{
    (void)work;
    say("done; ");
}

void work_drop(struct work *work)
{
    (void)work;
    say("drop; ");
}

struct metrics *role_metrics(const struct role_ctx *r)
{
    (void)r;
    return fake.metrics;
}

void role_waiting(struct role_ctx *r, bool waiting)
{
    (void)r;
    fake.waiting = waiting;
}

#endif
