/* The environment: lines NAME=value; the first byte chooses the daemon. What the configuration
 * accepts, those that use it accept too: Redis and broker addresses, URLs, issuers. A secret is
 * shown nowhere. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/daemon/config.h"
#include "common/github/contents.h"
#include "common/io/host_port.h"
#include "ingest/oidc.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 64 };

#define MARKER "The-Secret-That-Nobody-Sees" /* names of properties are shown in lower case */

/* What a daemon cannot start without; a line of the input takes its place. */
static const char *const needed[] = {
    "KAFKA_BROKERS=k1:9092,[::1]:9093",
    "REDIS_ENDPOINT=redis:6379",
    "GITHUB_APP_ID=12345",
    "GITHUB_APP_SECRET=" MARKER,
    "GITHUB_APP_PRIVATE_KEY=" MARKER,
    "ALLOWLIST_URL=https://github.com/pytorch/crcr/blob/main/allowlist.yml",
    "REDIS_LOGIN=" MARKER,
};

static bool is_named(char *const *environment, const char *line)
{
    size_t n = (size_t)(strchr(line, '=') - line) + 1;
    for (; *environment; environment++)
        if (strncmp(*environment, line, n) == 0)
            return true;
    return false;
}

/* A file of the machine is no input: it would be read. */
static bool is_fit(struct str line)
{
    ptrdiff_t equals = str_find(line, '=');
    return equals > 0 && str_find(line, '\0') < 0 && str_find_str(line, STR_LIT(MARKER)) < 0 &&
           !str_ends((struct str){ line.ptr, (size_t)equals }, "_FILE");
}

static bool is_list_of_addresses(const char *text)
{
    struct str rest = str_of(text), part;
    struct host_port at;
    struct why why;
    while (str_split(&rest, ',', &part)) {
        char *one = str_dup(str_trim(part));
        enum err err = host_port_parse(one, &at, &why);
        free(one);
        if (err)
            return false;
    }
    return true;
}

/* PROPERTY_ISSUERS and those that a daemon of another kind does not read are not asked for here. */
static void check_value(const struct config *c, const struct property *p, bool allow_http)
{
    struct host_port at;
    struct content_source source;
    struct why why;
    bool text = p->type != PROPERTY_NUMBER && p->type != PROPERTY_BYTES &&
                p->type != PROPERTY_SECONDS && p->type != PROPERTY_BOOL;
    const char *value = text ? config_text(c, p->name) : NULL;
    if (p->type == PROPERTY_NUMBER || p->type == PROPERTY_BYTES || p->type == PROPERTY_SECONDS)
        must(config_number(c, p->name) >= p->min && config_number(c, p->name) <= p->max);
    if (!value)
        return;
    if (p->type == PROPERTY_LISTEN || p->type == PROPERTY_SERVER)
        must(!host_port_parse(value, &at, &why));
    else if (p->type == PROPERTY_SERVERS)
        must(is_list_of_addresses(value));
    else if (p->type == PROPERTY_URL)
        must(!http_url_check(value, allow_http, &why) && !str_ends(str_of(value), "/"));
    else if (p->type == PROPERTY_SOURCE && !allow_http)
        (void)!content_source_parse(&source, str_of(value), &why); /* refused at its use */
}

static void check_config(const struct config *c, enum daemon daemon)
{
    struct buf shown;
    buf_init(&shown, 1u << 20);
    config_print(c, &shown);
    must(str_find_str(buf_str(&shown), STR_LIT(MARKER)) < 0);
    buf_clear(&shown);
    bool allow_http = config_bool(c, "CRCR_ALLOW_HTTP");
    for (size_t i = 0; i < config_n_properties; i++)
        if (config_properties[i].daemons & (unsigned)daemon)
            check_value(c, &config_properties[i], allow_http);
    if (daemon == DAEMON_INGEST) {
        struct oidc *oidc = NULL;
        struct why why;
        const struct oidc_options options = { .issuers = config_text(c, "CRCR_OIDC_ISSUERS"),
                                              .audience = config_text(c, "CRCR_OIDC_AUDIENCE"),
                                              .allow_http = allow_http,
                                              .check_only = true };
        must(!oidc_new(&oidc, &options, &why) || strstr(why.text, "CRCR_OIDC_ISSUERS"));
        oidc_free(oidc);
    }
    (void)config_redis(c, "crcr:");
    (void)config_kafka(c, "crcr-fuzz");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *environment[LINES_MAX + sizeof(needed) / sizeof(needed[0]) + 1] = { NULL };
    struct config *c = NULL;
    struct buf faults;
    struct str line, text = { (const char *)data + 1, size - 1 };
    size_t n = 0;
    if (size == 0)
        return 0;
    while (n < LINES_MAX && str_split(&text, '\n', &line))
        if (is_fit(line))
            environment[n++] = str_dup(line);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!is_named(environment, needed[i]))
            environment[n++] = str_dup(str_of(needed[i]));
    enum daemon daemon = (enum daemon)(1 << data[0] % 4);
    buf_init(&faults, 1u << 20);
    if (!config_load(&c, daemon, environment, &faults))
        check_config(c, daemon);
    else
        must(faults.len > 0 && str_ends(buf_str(&faults), "\n"));
    must(str_find_str(buf_str(&faults), STR_LIT(MARKER)) < 0);
    config_free(c);
    buf_clear(&faults);
    while (n)
        free(environment[--n]);
    return 0;
}
