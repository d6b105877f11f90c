/* Logs: one line an event on stderr, event name first, then key and value. JSON for machines, text
 * for people. Never a body, a token, a secret or a signature. Library code does not log.
 *
 *     log_info("dispatch_sent", LOG_STR("delivery", d), LOG_INT("attempt", 2));
 *     {"at":"2026-11-21T03:20:00.000Z","level":"info","daemon":"crcr-dispatcher","event":"dispatch_sent",…}
 */
#ifndef CRCR_BASE_LOG_H
#define CRCR_BASE_LOG_H

#include "str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_JSON, LOG_TEXT };

struct log_field {
    const char *name; /* NULL ends the list */
    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_REAL, LOG_FIELD_BOOL } type;
    struct str text;
    int64_t number;
    double real;
};

#define LOG_STR(n, s)                                                                              \
    {                                                                                              \
        .name = (n), .type = LOG_FIELD_STR, .text = (s)                                            \
    }
#define LOG_INT(n, i)                                                                              \
    {                                                                                              \
        .name = (n), .type = LOG_FIELD_INT, .number = (i)                                          \
    }
#define LOG_REAL(n, r)                                                                             \
    {                                                                                              \
        .name = (n), .type = LOG_FIELD_REAL, .real = (r)                                           \
    }
#define LOG_BOOL(n, b)                                                                             \
    {                                                                                              \
        .name = (n), .type = LOG_FIELD_BOOL, .number = (b)                                         \
    }

/* Called once by main before the first thread starts. daemon is kept: pass a literal. */
void log_init(const char *daemon, enum log_level level, enum log_format format);
/* Writes one line with one write(2); values are escaped, invalid UTF-8 is replaced. Any thread. */
void log_write(enum log_level level, const char *event, const struct log_field *fields);

#define LOG_AT(level, event, ...)                                                                  \
    log_write(level, event, (const struct log_field[]){ __VA_ARGS__, { .name = NULL } })
/* Each takes the event name and at least one field. */
#define log_debug(event, ...) LOG_AT(LOG_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...)  LOG_AT(LOG_INFO, event, __VA_ARGS__)
#define log_warn(event, ...)  LOG_AT(LOG_WARN, event, __VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_ERROR, event, __VA_ARGS__)

#endif
