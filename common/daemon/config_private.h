/* Shared by config*.c only. */
#ifndef CRCR_DAEMON_CONFIG_PRIVATE_H
#define CRCR_DAEMON_CONFIG_PRIVATE_H

#include "config.h"

#define KAFKA_PREFIX         "CRCR_KAFKA_"
#define KAFKA_PROPERTIES_MAX 64

/* The value of one property in force. */
struct value {
    char *text; /* as given or the fallback; NULL when there is none. Owned. */
    bool set;   /* by the environment */
    int64_t number;
};

struct config {
    enum daemon daemon;
    struct value *values;                              /* as config_properties */
    struct kafka_property kafka[KAFKA_PROPERTIES_MAX]; /* name and value owned */
    size_t n_kafka;
};

/* ---- config_value.c: PURE but for PROPERTY_FILE ---- */

/* Reads v->text as p says: number, and text where it is normalised. On a fault returns false; why
 * may then say more than config_accepted. */
bool config_parse(const struct property *p, struct value *v, bool allow_http, struct why *why);
/* The value of p as it may be printed: "(set)" of a secret, URLs as url_shown has them. */
void config_put_shown(const struct property *p, struct str text, struct buf *to);
/* "a whole number from 1 to 1000000": what the property takes. */
void config_accepted(const struct property *p, struct buf *to);

/* ---- config_kafka.c: PURE ---- */

/* One CRCR_KAFKA_* variable (without _FILE); value is borrowed. *why: the reason on ERR_REFUSE. */
enum err config_kafka_add(struct config *c, struct str name, const char *value, struct why *why);
/* True when a librdkafka property is not to be printed. */
bool config_kafka_is_secret(const char *name);

#endif
