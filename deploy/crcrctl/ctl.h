/* What the verbs of crcrctl share: configuration, exit codes, how errors are told. */
#ifndef CRCR_CTL_CTL_H
#define CRCR_CTL_CTL_H

#include <stdio.h>

#include "../../common/daemon/config.h"
#include "../../common/io/redis.h"
#include "../../common/model/topics.h"

enum ctl_exit {
    CTL_OK = 0,
    CTL_PROBLEM = 1,     /* it found a problem, or did not find what was asked for */
    CTL_USAGE = 2,       /* wrong arguments or configuration */
    CTL_UNREACHABLE = 3, /* Kafka, Redis or the relay did not answer */
};

struct ctl {
    const char *verb;
    const char *usage; /* of the verb, as --help prints it */
    struct config *config;
    struct kafka_options kafka;
    struct topics topics;
};

/* One verb, with its own arguments; argv[0] is the verb. */
typedef int verb_fn(struct ctl *ctl, int argc, char **argv);
verb_fn verb_tail, verb_trace, verb_send_webhook, verb_send_callback, verb_allowlist, verb_lag,
    verb_topics, verb_config, verb_levels, verb_probe, verb_redeliver, verb_dlq, verb_replay,
    verb_rebuild_hud, verb_score;

/* Reads the configuration from the environment; CTL_USAGE with the faults on stderr. */
int ctl_open(struct ctl *ctl);
void ctl_close(struct ctl *ctl);
/* CTL_USAGE, told on stderr, when nothing says where Kafka is. */
int ctl_needs_kafka(const struct ctl *ctl);
/* How the view is reached; endpoint is NULL or empty where REDIS_ENDPOINT is not set. */
struct redis_options ctl_redis(const struct ctl *ctl);
/* Prints "crcrctl VERB: text" and gives the exit code that fits the error. */
int ctl_fail(const struct ctl *ctl, enum err err, const struct why *why);
/* --help was asked for (help): usage on stdout, CTL_OK; else usage on stderr, CTL_USAGE. */
int ctl_usage(const struct ctl *ctl, bool help);
/* A wrong argument: says which and what is accepted. */
int ctl_bad(const struct ctl *ctl, const char *what, const char *value, const char *accepted);
/* The values of options that several verbs have. Each gives CTL_OK, or says what is accepted.
 * pr: a pull request's number. time: "10m", "2h", "3d", "45s" ago, or an RFC 3339 time, as
 * wall-clock milliseconds. duration: "45s" … "3d" in milliseconds. rate: "5" or "5/s". */
int ctl_pr(const struct ctl *ctl, const char *text, int64_t *ret);
int ctl_time(const struct ctl *ctl, const char *option, const char *text, int64_t *ret);
int ctl_duration(const struct ctl *ctl, const char *option, const char *text, int64_t *ret);
int ctl_rate(const struct ctl *ctl, const char *text, int *ret);
/* SIGINT and SIGTERM set a flag instead of ending the program. */
void ctl_catch_signals(void);
bool ctl_stopped(void);
/* True when out is a terminal, or CLICOLOR_FORCE is set, but never with NO_COLOR. */
bool ctl_color(FILE *out);

#endif
