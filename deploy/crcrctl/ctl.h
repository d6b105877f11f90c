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
    CTL_PROBLEM = 1,     /* it found a problem, or not what was asked for */
    CTL_USAGE = 2,       /* wrong arguments or configuration */
    CTL_UNREACHABLE = 3, /* Kafka, Redis or the relay did not answer */
};

#define CONTEXT_PATH 1024
#define CTL_PREFIX   "crcr." /* of the topics, as long as the configuration is not known */

struct args; /* verbs.h */

struct ctl {
    const char *verb;
    char **words; /* of the command line behind the verb; borrowed */
    int n_words;
    struct config *config; /* NULL: not read yet */
    struct kafka_options kafka;
    struct topics topics;
    char from[CONTEXT_PATH]; /* the configuration: the file of a context, or "the environment" */
};

/* Reads the configuration (contexts.c); CTL_USAGE with the faults on stderr. */
int ctl_open(struct ctl *ctl, const struct args *args);
void ctl_close(struct ctl *ctl);
/* CTL_USAGE, with a line on stderr, when KAFKA_BROKERS is not set. */
int ctl_needs_kafka(const struct ctl *ctl);
/* Connects to Redis. ERR_STOP: REDIS_ENDPOINT is not set. */
enum err ctl_redis(const struct ctl *ctl, struct redis **ret, struct why *why) MUST_CHECK;
/* A writer for the topic, which must exist (ERR_STOP names it). *ret is set even if the check
 * fails. */
enum err ctl_writer(const struct ctl *ctl, enum topic topic, struct topic_writer **ret,
                    struct why *why) MUST_CHECK;

/* Prints one line on stderr, "crcrctl VERB: text", below any progress that is shown. */
void ctl_say(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints why, and returns the exit code that fits the error. */
int ctl_fail(const struct ctl *ctl, enum err err, const struct why *why);
/* Prints which argument is wrong, or missing when value is "", and what is accepted. Returns
 * CTL_USAGE. */
int ctl_bad(const struct ctl *ctl, const char *what, const char *value, const char *accepted);
/* Prints a line, cut to the terminal's width unless it is whole by its nature. */
void ctl_put_line(struct str line, bool whole);
/* Writes it to stdout. */
void ctl_put(const struct buf *text);
/* The same of lines for people: a terminal gets long ones broken at blanks. */
void ctl_put_text(const struct buf *text);
/* Appends the file ("-": standard input) to `to`. ERR_REFUSE: it cannot be read, or does not fit
 * the buffer. */
enum err ctl_read_file(struct buf *to, const char *name, struct why *why) MUST_CHECK;

/* SIGINT and SIGTERM set a flag instead of ending the program. */
void ctl_catch_signals(void);
bool ctl_stopped(void);
/* Waits; false when the program is to stop. */
bool ctl_wait(int64_t ms);
/* True when out is a terminal, or CLICOLOR_FORCE is set, but never with NO_COLOR. */
bool ctl_color(FILE *out);

/* Shows the progress of something long on stderr: one line that is overwritten on a terminal, else
 * a new line every few seconds. Cheap to call often. */
void progress_show(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);
/* Clears the progress from the terminal. Call it before any other line is printed. */
void progress_end(void);

/* A rate limit: at most this many a second, evenly spread. */
struct pace {
    int64_t per_second; /* 0: no limit */
    int64_t due_us;     /* monotonic; 0 at first */
};
/* Waits until the next one may go; false when the program is to stop. */
bool pace_wait(struct pace *p);

#endif
