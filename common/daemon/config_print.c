#include <string.h>

#include "config_private.h"

enum { TEXT_WIDTH = 96 };

/* Breaks text into lines that begin with the indent. */
static void put_wrapped(struct buf *to, const char *indent, struct str text)
{
    size_t width = TEXT_WIDTH - strlen(indent);
    while (text.len) {
        size_t n = text.len;
        if (n > width) {
            n = width;
            while (n > 1 && text.ptr[n] != ' ')
                n--;
            if (n == 1) /* one long word */
                n = width;
        }
        buf_printf(to, "%s%.*s\n", indent, (int)n, text.ptr);
        text = str_trim(str_from(text, n));
    }
}

static void put_property(struct buf *to, const struct property *p, enum daemon daemon)
{
    struct buf CLEANUP(buf_clear) about;
    buf_init(&about, 4096);
    buf_printf(&about, "%s Accepted: ", p->help);
    config_accepted(p, &about);
    buf_putc(&about, '.');
    buf_printf(to, "  %s%s\n", p->name, p->required & daemon ? "  (required)" : "");
    put_wrapped(to, "      ", buf_str(&about));
    if (p->fallback)
        buf_printf(to, "      Default: %s\n", p->fallback);
}

static const char kafka_help[] =
    "Any librdkafka property, dots as underscores: CRCR_KAFKA_SECURITY_PROTOCOL=SASL_SSL. Those "
    "that the delivery rules fix (acks, groups, offsets, partitioner, time-outs, statistics) are "
    "refused.";

void config_help(enum daemon daemon, const char *program, const char *summary, const char *roles,
                 struct buf *to)
{
    buf_printf(to, "%s: %s\n\n", program, summary);
    buf_printf(to, "usage: %s [--roles a,b] [--check-config] [--version] [--help]\n\n", program);
    buf_puts(to, "  --check-config  print the configuration in force and its faults, then exit (0 "
                 "good, 2 not)\n"
                 "  --roles a,b     run only these roles; default all\n"
                 "  --version       print the version\n\n");
    if (roles)
        buf_puts(to, roles);
    buf_puts(to, "The configuration comes from the environment. NAME_FILE=path reads NAME from a "
                 "file.\nAn empty value counts as unset.\n\n");
    for (size_t i = 0; i < config_n_properties; i++)
        if (config_properties[i].daemons & daemon)
            put_property(to, &config_properties[i], daemon);
    buf_puts(to, "  " KAFKA_PREFIX "*\n");
    put_wrapped(to, "      ", str_of(kafka_help));
}

static void put_daemons(struct buf *to, unsigned daemons)
{
    static const struct {
        enum daemon bit;
        const char *name;
    } names[] = {
        { DAEMON_INGEST, "ingest" },
        { DAEMON_DISPATCHER, "dispatcher" },
        { DAEMON_REPORTER, "reporter" },
        { DAEMON_CTL, "crcrctl" },
    };
    const char *comma = "";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!(daemons & names[i].bit))
            continue;
        buf_printf(to, "%s%s", comma, names[i].name);
        comma = ", ";
    }
}

/* A | would end the cell. */
static void put_cell(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '|' || text.ptr[i] == '\\')
            buf_putc(to, '\\');
        buf_putc(to, text.ptr[i]);
    }
}

static void put_row(struct buf *to, const struct property *p)
{
    struct buf CLEANUP(buf_clear) accepted;
    buf_init(&accepted, 4096);
    config_accepted(p, &accepted);
    buf_printf(to, "| `%s` | ", p->name);
    put_daemons(to, p->daemons);
    buf_puts(to, " | ");
    if (p->fallback) {
        struct str rest = str_of(p->fallback), part;
        for (size_t i = 0; str_split(&rest, ',', &part); i++)
            buf_printf(to, "%s`%.*s`", i ? ", " : "", STR_ARG(part));
    } else if (p->required) {
        buf_puts(to, "**required**");
        if (p->required != p->daemons) {
            buf_puts(to, ": ");
            put_daemons(to, p->required);
        }
    }
    buf_puts(to, " | ");
    put_cell(to, str_of(p->help));
    buf_puts(to, p->secret ? " Secret. | " : " | ");
    put_cell(to, buf_str(&accepted));
    buf_puts(to, " |\n");
}

void config_markdown(struct buf *to)
{
    buf_puts(to, "| name | read by | default | meaning | accepted |\n"
                 "|---|---|---|---|---|\n");
    for (size_t i = 0; i < config_n_properties; i++)
        put_row(to, &config_properties[i]);
    buf_puts(to, "| `" KAFKA_PREFIX "*` | ");
    put_daemons(to, DAEMON_INGEST | DAEMON_DISPATCHER | DAEMON_REPORTER | DAEMON_CTL);
    buf_puts(to, " |  | ");
    put_cell(to, str_of(kafka_help));
    buf_puts(to, " | as librdkafka documents |\n");
}

static void put_setting(const struct property *p, const char *text, struct buf *to)
{
    buf_printf(to, "%s=", p->name);
    config_put_shown(p, str_of(text), to);
    buf_putc(to, '\n');
}

void config_print(const struct config *c, struct buf *to)
{
    for (size_t i = 0; i < config_n_properties; i++) {
        const struct property *p = &config_properties[i];
        const char *text = c->values[i].text;
        if (p->daemons & c->daemon)
            put_setting(p, text, to);
    }
    for (size_t i = 0; i < c->n_kafka; i++)
        buf_printf(to, "kafka %s=%s\n", c->kafka[i].name,
                   config_kafka_is_secret(c->kafka[i].name) ? "(set)" : c->kafka[i].value);
}
