/* The declarative list of topics (deploy/topics/topics.conf says its syntax). PURE but for
 * topic_specs_read, which reads a file. */
#ifndef CRCR_IO_TOPIC_SPEC_H
#define CRCR_IO_TOPIC_SPEC_H

#include "../base/err.h"
#include "../base/str.h"

#define TOPIC_SPEC_MAX_CONFIGS    16
#define TOPIC_SPEC_MAX_TOPICS     100
#define TOPIC_SPEC_MAX_PARTITIONS 10000

struct topic_config {
    char name[64];
    char value[64]; /* as Kafka takes it: 7d is 604800000 here */
};

struct topic_spec {
    char name[96]; /* without the prefix */
    int partitions;
    struct topic_config configs[TOPIC_SPEC_MAX_CONFIGS];
    size_t n_configs;
};

struct topic_specs {
    struct topic_spec *at;
    size_t n;
};

/* file is the name used in errors: "topics.conf:12:5: …" (ERR_REFUSE at the first fault). On OK
 * clear it with topic_specs_clear. */
enum err topic_specs_parse(struct topic_specs *ret, const char *file, struct str text,
                           struct why *why) MUST_CHECK;
/* The same from a file; ERR_REFUSE when it cannot be read. */
enum err topic_specs_read(struct topic_specs *ret, const char *file, struct why *why) MUST_CHECK;
void topic_specs_clear(struct topic_specs *specs);
/* NULL when that config is not set. */
const char *topic_spec_config(const struct topic_spec *spec, const char *name);

#endif
