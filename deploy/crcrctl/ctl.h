/* What the verbs of crcrctl share: configuration, exit codes, errors, signals, progress. */
#ifndef CRCR_CTL_CTL_H
#define CRCR_CTL_CTL_H

#include <stdio.h>

#include "../../common/daemon/config.h"
#include "../../common/io/redis.h"
#include "../../common/io/topic_writer.h"
#include "../../common/model/topics.h"

enum ctl_exit {
    CTL_OK = 0,
    CTL_PROBLEM = 1,     /* it found a problem, or did not find what was asked for */
    CTL_USAGE = 2,       /* wrong arguments or configuration */
    CTL_UNREACHABLE = 3, /* Kafka, Redis or the relay did not answer */
};

struct ctl {
    const char *verb;
    struct config *config;
    struct kafka_options kafka;
    struct topics topics;
};

/* Reads the configuration from the environment; CTL_USAGE with the faults on stderr. */
int ctl_open(struct ctl *ctl);
void ctl_close(struct ctl *ctl);
/* CTL_USAGE, with a line on stderr, when nothing says where Kafka is. */
int ctl_needs_kafka(const struct ctl *ctl);
/* How the view is reached; endpoint is NULL or empty where REDIS_ENDPOINT is not set. */
struct redis_options ctl_redis(const struct ctl *ctl);
/* For the topic, which must be there (ERR_STOP names it). *ret is set also where the check fails.
 */
enum err ctl_writer(const struct ctl *ctl, enum topic topic, struct topic_writer **ret,
                    struct why *why) MUST_CHECK;

/* One line on stderr, "crcrctl VERB: text", after what progress shows there. */
void ctl_say(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);
/* Says why, and gives the exit code that fits the error. */
int ctl_fail(const struct ctl *ctl, enum err err, const struct why *why);
/* A wrong argument: says which and what is accepted. CTL_USAGE. */
int ctl_bad(const struct ctl *ctl, const char *what, const char *value, const char *accepted);
/* Writes it to stdout. */
void ctl_put(const struct buf *text);
/* Appends the file ("-": standard input) to `to`; ERR_REFUSE when it cannot be read or is larger
 * than the buffer may be. */
enum err ctl_read_file(struct buf *to, const char *name, struct why *why) MUST_CHECK;

/* SIGINT and SIGTERM set a flag instead of ending the program. */
void ctl_catch_signals(void);
bool ctl_stopped(void);
/* Waits; false when the program is to stop. */
bool ctl_wait(int64_t ms);
/* True when out is a terminal, or CLICOLOR_FORCE is set, but never with NO_COLOR. */
bool ctl_color(FILE *out);

/* How far something long is, on stderr: in place on a terminal, else a line every few seconds.
 * Cheap to call often. */
void progress_show(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);
/* Clears it from the terminal, whoever showed it: before any other line is printed. */
void progress_end(void);

/* At most so many a second, one after the other. */
struct pace {
    int64_t per_second; /* 0: no limit */
    int64_t due_us;     /* monotonic; 0 at first */
};
/* Waits for the next one's turn; false when the program is to stop. */
bool pace_wait(struct pace *p);

#endif
