#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/file.h"
#include "../base/json_text.h"
#include "../base/mem.h"
#include "config_private.h"

enum { SECRET_FILE_MAX = 1 << 20, QUOTED_MAX = 200 };

static ptrdiff_t find_property(struct str name)
{
    for (size_t i = 0; i < config_n_properties; i++)
        if (str_is(name, config_properties[i].name))
            return (ptrdiff_t)i;
    return -1;
}

static bool is_known(struct str name)
{
    return find_property(name) >= 0 || str_starts(name, KAFKA_PREFIX);
}

bool config_is_setting(struct str name)
{
    bool file = str_ends(name, "_FILE");
    struct str base = { name.ptr, name.len - (file ? strlen("_FILE") : 0) };
    return is_known(name) || (file && is_known(base));
}

/* Begins a fault's line with the name and, when it may be shown, the value. In a URL that is wrong
 * an @ may stand behind any part of a password. */
static void put_fault(struct buf *faults, struct str name, const char *value)
{
    buf_put(faults, name);
    struct str shown = str_of(value);
    if (shown.ptr && str_find(shown, '@') < 0) {
        if (shown.len > QUOTED_MAX)
            shown.len = QUOTED_MAX;
        buf_putc(faults, '=');
        json_text_put(faults, shown);
    }
    buf_puts(faults, ": ");
}

/* ---- reading the environment ---- */

/* The content of a small file as text, the caller's; NULL with the reason. */
static char *read_text_file(const char *path, struct why *why)
{
    struct buf content;
    buf_init(&content, SECRET_FILE_MAX);
    enum err err = file_read(&content, open(path, O_RDONLY | O_CLOEXEC), why);
    struct str text = buf_str(&content);
    if (!err && str_find(text, '\0') >= 0)
        err = why_set(why, ERR_REFUSE, "not text");
    if (err) {
        buf_clear(&content);
        return NULL;
    }
    if (str_ends(text, "\n"))
        content.ptr[--content.len] = '\0';
    if (str_ends(buf_str(&content), "\r"))
        content.ptr[--content.len] = '\0';
    return buf_take(&content, NULL);
}

/* Takes the value that a property or CRCR_KAFKA_* name has in the environment; empty is unset. */
static void take_value(struct config *c, struct str name, const char *value, struct buf *faults)
{
    if (!*value)
        return;
    ptrdiff_t i = find_property(name);
    if (i < 0) {
        struct why why;
        if (config_kafka_add(c, name, value, &why)) {
            put_fault(faults, name, NULL);
            buf_printf(faults, "%s\n", why.text);
        }
        return;
    }
    struct value *v = &c->values[i];
    if (v->set) {
        put_fault(faults, name, NULL);
        buf_puts(faults, "given twice (also as a file?)\n");
        return;
    }
    v->text = mem_dup(value);
    v->set = true;
}

/* NAME_FILE=path of a name that we know. */
static void take_file(struct config *c, struct str name, const char *path, struct buf *faults)
{
    struct why why;
    struct str base = { name.ptr, name.len - strlen("_FILE") };
    if (!*path)
        return;
    char *CLEANUP(mem_free_secret_char) text = read_text_file(path, &why);
    if (text) {
        take_value(c, base, text, faults);
        return;
    }
    put_fault(faults, name, *path == '/' ? path : NULL); /* else it may be the secret itself */
    buf_printf(faults, "%s; accepted: the path of a text file that holds %.*s\n", why.text,
               STR_ARG(base));
}

/* …_PORT_<n>_TCP, …_PORT_<n>_TCP_ADDR and so on. */
static bool has_numbered_port(struct str name)
{
    ptrdiff_t at = str_find_str(name, STR_LIT("_PORT_"));
    if (at < 0)
        return false;
    struct str rest = str_from(name, (size_t)at + strlen("_PORT_")), number;
    uint64_t n;
    return str_split(&rest, '_', &number) && str_to_u64(number, &n) && rest.len > 0;
}

/* True for names that Kubernetes puts into every container for each Service
 * (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables). */
static bool is_service_link(struct str name, struct str value)
{
    if (str_ends(name, "_SERVICE_HOST") || str_ends(name, "_SERVICE_PORT") ||
        str_find_str(name, STR_LIT("_SERVICE_PORT_")) >= 0 || has_numbered_port(name))
        return true;
    /* Kubernetes writes an address here; a person who means CRCR_LISTEN writes a number. */
    return str_ends(name, "_PORT") && str_find_str(value, STR_LIT("://")) >= 0;
}

static void take_variable(struct config *c, const char *variable, struct buf *faults)
{
    const char *equals = strchr(variable, '=');
    if (!equals)
        return;
    struct str name = { variable, (size_t)(equals - variable) };
    const char *value = equals + 1;
    struct str base = name;
    bool file = str_ends(name, "_FILE");
    if (file)
        base.len -= strlen("_FILE");
    if (find_property(name) >= 0 || (is_known(name) && !file))
        take_value(c, name, value, faults);
    else if (file && is_known(base))
        take_file(c, name, value, faults);
    else if (str_starts(name, "CRCR_") && !is_service_link(name, str_of(value)))
        buf_printf(faults, "%.*s: unknown name; --help lists those that are accepted\n",
                   STR_ARG(name));
}

void config_find_of_pytorch(char *const *environment, struct buf *to)
{
    for (; *environment; environment++) {
        struct str value = str_of(*environment), name = STR_NONE;
        if (!str_split(&value, '=', &name) || value.len == 0)
            continue;
        for (size_t i = 0; config_of_pytorch[i]; i++)
            if (str_is(name, config_of_pytorch[i]))
                buf_printf(to, "%s%s", to->len ? ", " : "", config_of_pytorch[i]);
    }
}

/* ---- checking it ---- */

static void check_value(const struct config *c, size_t i, bool allow_http, struct buf *faults)
{
    const struct property *p = &config_properties[i];
    struct value *v = &c->values[i];
    struct str name = str_of(p->name);
    struct why why = { "" };
    if (!v->text) {
        if (!(p->required & c->daemon))
            return;
        put_fault(faults, name, NULL);
        buf_printf(faults, "missing. %s Accepted: ", p->help);
        config_accepted(p, faults);
    } else if (!config_parse(p, v, allow_http, &why)) {
        struct buf CLEANUP(buf_clear) shown;
        buf_init(&shown, 4096);
        config_put_shown(p, str_of(v->text), &shown);
        bool said = why.text[0] != '\0';
        put_fault(faults, name, p->secret || said ? NULL : buf_str(&shown).ptr);
        if (said)
            buf_printf(faults, "%s; ", why.text);
        buf_puts(faults, "accepted: ");
        config_accepted(p, faults);
    } else {
        return;
    }
    buf_putc(faults, '\n');
}

static bool allows_http(const struct config *c)
{
    const char *text = c->values[find_property(STR_LIT("CRCR_ALLOW_HTTP"))].text;
    return str_is(str_of(text), "1") || str_is(str_of(text), "true");
}

enum err config_load(struct config **ret, enum daemon daemon, char *const *environment,
                     struct buf *faults)
{
    struct config *c = mem_alloc(1, sizeof(*c));
    c->daemon = daemon;
    c->values = mem_alloc(config_n_properties, sizeof(*c->values));
    size_t before = faults->len;
    for (; environment && *environment; environment++)
        take_variable(c, *environment, faults);
    for (size_t i = 0; i < config_n_properties; i++)
        if (!c->values[i].text)
            c->values[i].text = mem_dup(config_properties[i].fallback);
    for (size_t i = 0; i < config_n_properties; i++)
        if (config_properties[i].daemons & daemon)
            check_value(c, i, allows_http(c), faults);
    if (faults->len > before || buf_full(faults)) {
        config_free(c);
        return ERR_STOP;
    }
    *ret = c;
    return OK;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < config_n_properties; i++)
        mem_free_secret(c->values[i].text);
    for (size_t i = 0; i < c->n_kafka; i++) {
        free((char *)c->kafka[i].name);
        mem_free_secret((char *)c->kafka[i].value);
    }
    free(c->values);
    free(c);
}

/* ---- asking ---- */

enum kind { KIND_TEXT, KIND_NUMBER, KIND_BOOL };

static enum kind kind_of(enum property_type type)
{
    if (type == PROPERTY_NUMBER || type == PROPERTY_BYTES || type == PROPERTY_SECONDS)
        return KIND_NUMBER;
    return type == PROPERTY_BOOL ? KIND_BOOL : KIND_TEXT;
}

static const struct value *value_get(const struct config *c, const char *name, enum kind kind)
{
    ptrdiff_t i = find_property(str_of(name));
    if (i < 0 || !(config_properties[i].daemons & c->daemon)) {
        fprintf(stderr, "bug: config_table.c does not give %s to this daemon\n", name);
        abort();
    }
    if (kind_of(config_properties[i].type) != kind) {
        fprintf(stderr, "bug: %s is asked for as another type than config_table.c says\n", name);
        abort();
    }
    return &c->values[i];
}

const char *config_text(const struct config *c, const char *name)
{
    return value_get(c, name, KIND_TEXT)->text;
}

int64_t config_number(const struct config *c, const char *name)
{
    return value_get(c, name, KIND_NUMBER)->number;
}

bool config_bool(const struct config *c, const char *name)
{
    return value_get(c, name, KIND_BOOL)->number != 0;
}

/* ---- what is asked for together ---- */

struct redis_options config_redis(const struct config *c, const char *key_prefix)
{
    const char *ca_file = config_text(c, "CRCR_REDIS_CA_FILE");
    return (struct redis_options){ .endpoint = config_text(c, "REDIS_ENDPOINT"),
                                   .login = config_text(c, "REDIS_LOGIN"),
                                   .tls = config_bool(c, "CRCR_REDIS_TLS"),
                                   .key_prefix = key_prefix,
                                   .ca_file = ca_file ? ca_file : config_text(c, "CRCR_CA_FILE") };
}

enum err config_budget(const struct config *c, struct budget_rules *ret, struct why *why)
{
    const char *content = config_text(c, "CRCR_BUDGET_CONTENT_CALLS");
    struct budget_rules rules = {
        .limit = { [BUDGET_REQUESTS_HOUR] = config_number(c, "CRCR_BUDGET_REQUESTS_HOUR"),
                   [BUDGET_POINTS_MINUTE] = config_number(c, "CRCR_BUDGET_POINTS_MINUTE"),
                   [BUDGET_CONTENT_MINUTE] = config_number(c, "CRCR_BUDGET_CONTENT_MINUTE"),
                   [BUDGET_CONTENT_HOUR] = config_number(c, "CRCR_BUDGET_CONTENT_HOUR") },
        .replicas = (int)config_number(c, "CRCR_BUDGET_REPLICAS"),
        .one_for_the_app = str_is(str_of(config_text(c, "CRCR_BUDGET_SCOPE")), "app"),
    };
    if (!budget_content_parse(&rules, str_of(content)))
        return why_set(why, ERR_STOP,
                       "CRCR_BUDGET_CONTENT_CALLS: \"%s\"; accepted are dispatch, check_run and "
                       "comment, comma-separated, or none",
                       content);
    *ret = rules;
    return OK;
}
