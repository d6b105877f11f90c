/* Configuration: environment variables. One property table (config_table.c) reads them, and prints
 * --help and deploy/CONFIGURATION.md. A name with _FILE appended reads the value from a file,
 * without one trailing newline. */
#ifndef CRCR_DAEMON_CONFIG_H
#define CRCR_DAEMON_CONFIG_H

#include "../base/buf.h"
#include "../io/kafka.h"
#include "../io/redis.h"
#include "../model/budget.h"

enum daemon { DAEMON_INGEST = 1, DAEMON_DISPATCHER = 2, DAEMON_REPORTER = 4, DAEMON_CTL = 8 };

enum property_type {
    PROPERTY_TEXT,
    PROPERTY_NUMBER,  /* whole number, min…max */
    PROPERTY_BYTES,   /* number with optional KiB, MiB, GiB */
    PROPERTY_SECONDS, /* number with optional s, m, h, d; kept in seconds */
    PROPERTY_BOOL,    /* 0, 1, true, false */
    PROPERTY_URL,     /* https, or http to loopback; a slash at the end is taken off */
    PROPERTY_CHOICE,  /* one of choices, separated by | */
    PROPERTY_LISTEN,  /* host:port; port 0 picks a free one */
    PROPERTY_SERVER,  /* host:port */
    PROPERTY_SERVERS, /* host:port, comma-separated */
    PROPERTY_SOURCE,  /* a URL as above, or the path of a file */
    PROPERTY_FILE,    /* the path of a readable file */
    PROPERTY_REPO,    /* owner/name */
    PROPERTY_PREFIX,  /* the beginning of a topic's name */
    PROPERTY_ISSUERS, /* issuer=jwks-url, comma-separated */
};

struct property {
    const char *name;
    enum property_type type;
    unsigned daemons;     /* bits of enum daemon that read it */
    unsigned required;    /* bits of those that cannot start without it */
    const char *fallback; /* NULL: none */
    bool secret;          /* never printed */
    int64_t min, max;     /* NUMBER, BYTES, SECONDS */
    const char *choices;
    const char *adds; /* PROPERTY_URL: the path that we add; NULL: paths of the API */
    const char *help; /* one sentence, for --help and README */
};
extern const struct property config_properties[];
extern const size_t config_n_properties;

struct config;

/* environment: "NAME=value" strings, NULL-terminated, as in environ. An empty value counts as
 * unset. ERR_STOP: all faults are in *faults, a line each: the name, the value and what is
 * accepted; unknown CRCR_* names too. */
enum err config_load(struct config **ret, enum daemon daemon, char *const *environment,
                     struct buf *faults) MUST_CHECK;
/* Settings of PyTorch's relay that mean nothing here (deploy/FROM_PYTORCH.md); NULL-terminated. */
extern const char *const config_of_pytorch[];
/* Appends those that are set, comma-separated. */
void config_find_of_pytorch(char *const *environment, struct buf *to);
void config_free(struct config *c);
/* Whether the environment may have it: a property, one of librdkafka's, either as a file. */
bool config_is_setting(struct str name);
/* By name. Asking for a name that the table does not give to this daemon, or for another type, is a
 * bug and aborts. Text: NULL when unset and without a fallback. */
const char *config_text(const struct config *c, const char *name);
int64_t config_number(const struct config *c, const char *name); /* NUMBER, BYTES, SECONDS */
bool config_bool(const struct config *c, const char *name);
/* KAFKA_BROKERS and CRCR_KAFKA_*; borrowed from the config. */
struct kafka_options config_kafka(const struct config *c, const char *client_id);
/* How to reach Redis, with the usual timeouts. key_prefix: that of the installation (topics.h).
 * Everything is borrowed, from c too. */
struct redis_options config_redis(const struct config *c, const char *key_prefix);

/* CRCR_BUDGET_*: GitHub's limits. ERR_STOP: CRCR_BUDGET_CONTENT_CALLS names something else. */
enum err config_budget(const struct config *c, struct budget_rules *ret,
                       struct why *why) MUST_CHECK;

/* --help: usage and the daemon's properties. roles: text that is printed as it is, may be NULL. */
void config_help(enum daemon daemon, const char *program, const char *summary, const char *roles,
                 struct buf *to);
/* The table of deploy/CONFIGURATION.md (Markdown), all daemons. */
void config_markdown(struct buf *to);
/* Name and value of each property in force, secrets as "(set)". For --check-config. */
void config_print(const struct config *c, struct buf *to);

#endif
