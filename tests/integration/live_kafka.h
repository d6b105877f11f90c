/* For tests that need a broker: KAFKA_BROKERS says where it is, KAFKA_PID which process, for those
 * that stop it. Each test makes topics of its own.
 */
#ifndef CRCR_TESTS_LIVE_KAFKA_H
#define CRCR_TESTS_LIVE_KAFKA_H

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/crypto/hmac.h"
#include "common/io/topic_admin.h"
#include "common/io/topic_follower.h"
#include "common/io/topic_reader.h"
#include "common/io/topic_writer.h"

#define WAIT_MS  30000 /* for things that happen at once when all is well */
#define ADMIN_MS 60000

/* Fails the test with the error's own text. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call))                                                                                \
            fail_msg("%s: %s", #call, why.text);                                                   \
    } while (0)

static inline struct kafka_options live_kafka(void)
{
    const char *brokers = getenv("KAFKA_BROKERS");

    if (!brokers)
        fail_msg("KAFKA_BROKERS is not set");
    return (struct kafka_options){ .brokers = brokers, .client_id = "live-test" };
}

/* A topic that nobody else uses; its name goes to `name` (and serves as a group's name too). */
static inline void live_topic(char name[64], int partitions)
{
    struct kafka_options kafka = live_kafka();
    struct topic_spec spec = { .partitions = partitions, .n_configs = 1 };
    struct topic_specs specs = { &spec, 1 };
    struct topic_report report;
    struct topic_admin *admin;
    struct why why;
    char random[17];

    random_hex(random, 8);
    snprintf(name, 64, "live-%s", random);
    snprintf(spec.name, sizeof(spec.name), "%s", name);
    spec.configs[0] = (struct topic_config){ "max.message.bytes", "27262976" };
    assert_ok(topic_admin_new(&admin, &kafka, ADMIN_MS, &why));
    assert_ok(topic_admin_compare(admin, &specs, "", true, 1, &report, &why));
    topic_admin_free(admin);
}

static inline struct topic_writer *live_writer(void)
{
    const struct topic_writer_options options = { .kafka = live_kafka(), .own_thread = true };
    struct topic_writer *w;
    struct why why;

    assert_ok(topic_writer_new(&w, &options, &why));
    return w;
}

/* n records with the numbers 0 … n-1 as value, keys k0 … k<keys-1>. */
static inline void live_fill(const char *topic, int n, int keys)
{
    struct topic_writer *w = live_writer();
    struct why why;
    char key[16], value[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "k%d", i % keys);
        snprintf(value, sizeof(value), "%d", i);
        assert_ok(topic_writer_put(
            w, &(struct new_record){ .topic = topic, .key = str_of(key), .value = str_of(value) },
            NULL, NULL, &why));
    }
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    topic_writer_free(w);
}

static inline struct topic_reader *live_reader(const struct topic_reader_options *options)
{
    struct topic_reader *r;
    struct why why;

    assert_ok(topic_reader_new(&r, options, &why));
    return r;
}

/* The next record; fails when none comes. */
static inline struct record *live_next(struct topic_reader *r)
{
    struct record *record = topic_reader_next(r, WAIT_MS);

    if (!record)
        fail_msg("no record came");
    return record;
}

/* What the group has committed in partition 0; -1: nothing. */
static inline int64_t live_committed(const char *group, const char *topic)
{
    struct kafka_options kafka = live_kafka();
    struct topic_admin *admin;
    struct partition_lag *lags;
    struct why why;
    size_t n;

    assert_ok(topic_admin_new(&admin, &kafka, ADMIN_MS, &why));
    assert_ok(topic_admin_lag(admin, &group, 1, &topic, 1, &lags, &n, &why));
    int64_t committed = lags[0].committed;
    free(lags);
    topic_admin_free(admin);
    return committed;
}

static inline pid_t live_pid(void)
{
    const char *pid = getenv("KAFKA_PID");

    if (!pid)
        fail_msg("KAFKA_PID is not set");
    return (pid_t)atol(pid);
}

/* Whether the thread is stopped, or has ended. */
static inline bool live_is_stopped(const char *tasks, const char *thread)
{
    char path[PATH_MAX], stat[512] = "";

    snprintf(path, sizeof(path), "%s/%s/stat", tasks, thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    if (!fgets(stat, sizeof(stat), file))
        stat[0] = '\0';
    fclose(file);
    const char *name_end = strrchr(stat, ')');
    return !name_end || !strncmp(name_end, ") T", 3);
}

static inline bool live_stands_still(pid_t pid)
{
    char tasks[64];
    const struct dirent *thread;
    bool stopped = true;

    snprintf(tasks, sizeof(tasks), "/proc/%ld/task", (long)pid);
    DIR *all = opendir(tasks);
    if (!all)
        fail_msg("no process %ld", (long)pid);
    while (stopped && (thread = readdir(all)))
        stopped = thread->d_name[0] == '.' || live_is_stopped(tasks, thread->d_name);
    closedir(all);
    return stopped;
}

/* The broker is stopped, not ended: the connection stands and nothing answers. kill returns before
 * its threads have stopped: they would still acknowledge what comes next. */
static inline void live_freeze(pid_t pid)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;

    kill(pid, SIGSTOP);
    while (!live_stands_still(pid)) {
        if (clock_mono_ms() >= deadline) {
            kill(pid, SIGCONT);
            fail_msg("the broker goes on");
        }
        usleep(5000);
    }
}

static inline void live_thaw(pid_t pid)
{
    kill(pid, SIGCONT);
}

#endif
