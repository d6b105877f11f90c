#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_text.h"
#include "clean.h"
#include "verb_dlq.h"

#define TEXT_MAX (256u << 20) /* a body of 26 MiB whose every byte is escaped, and indented */

static const char *source_of(const struct dlq_entry *e, const struct topics *topics)
{
    enum topic topic = topics_find(topics, str_of(e->source_topic));

    return topic == TOPIC_COUNT ? e->source_topic : topic_base_name(topic);
}

static void put_padded(struct buf *to, const char *text, size_t width)
{
    size_t before = to->len;

    clean_line(to, str_of(*text ? text : "-"));
    while (to->len - before < width)
        buf_putc(to, ' ');
    buf_puts(to, "  ");
}

void dlq_print_head(void)
{
    printf("%-10s  %-24s  %-9s  %-11s  %-36s  %-24s  %s\n", "WHERE", "WHEN", "CLASS", "SOURCE",
           "DELIVERY", "REPO", "ERROR");
}

static void put_line(struct buf *to, const struct dlq_entry *e, const struct topics *topics)
{
    char at[CLOCK_TEXT_SIZE], place[64];

    clock_format(e->parked_ms, at);
    snprintf(place, sizeof(place), "%" PRId32 "@%" PRId64, e->at.partition, e->at.offset);
    put_padded(to, place, 10);
    put_padded(to, at, 24);
    put_padded(to, e->class, 9);
    put_padded(to, source_of(e, topics), 11);
    put_padded(to, *e->delivery ? e->delivery : e->key, 36);
    put_padded(to, *e->repo ? e->repo : e->key, 24);
    if (e->state != DLQ_OPEN)
        buf_printf(to, "(%s) ", dlq_state_name(e->state));
    clean_line(to, str_of(e->error));
}

static void put_text(struct buf *to, const char *name, const char *text)
{
    buf_printf(to, ",\"%s\":", name);
    json_text_put(to, *text ? str_of(text) : STR_NONE);
}

static void put_json(struct buf *to, const struct dlq_entry *e, const struct topics *topics)
{
    char at[CLOCK_TEXT_SIZE];

    clock_format(e->parked_ms, at);
    buf_printf(to,
               "{\"position\":\"%" PRId32 "@%" PRId64 "\",\"partition\":%" PRId32
               ",\"offset\":%" PRId64 ",\"parked_at\":\"%s\"",
               e->at.partition, e->at.offset, e->at.partition, e->at.offset, at);
    put_text(to, "state", dlq_state_name(e->state));
    put_text(to, "class", e->class);
    put_text(to, "source", source_of(e, topics));
    put_text(to, "key", e->key);
    put_text(to, "delivery", e->delivery);
    put_text(to, "repo", e->repo);
    put_text(to, "error", e->error);
    buf_putc(to, '}');
}

void dlq_print(const struct dlq_entry *entry, bool json, const struct topics *topics)
{
    struct buf line;

    buf_init(&line, 16u << 10);
    (json ? put_json : put_line)(&line, entry, topics);
    printf("%.*s\n", STR_ARG(buf_str(&line)));
    buf_clear(&line);
}

/* Pretty when it is JSON, else as it is; either way harmless. */
static void put_body(struct buf *to, struct str body)
{
    json_t *document = body.len ? json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL) : NULL;
    char *pretty = document ? json_dumps(document, JSON_INDENT(2)) : NULL;

    clean_text(to, pretty ? str_of(pretty) : body);
    free(pretty);
    json_decref(document);
    buf_putc(to, '\n');
}

void dlq_print_record(const struct record *record)
{
    struct buf text;

    buf_init(&text, TEXT_MAX);
    buf_puts(&text, "key: ");
    clean_line(&text, record->key);
    buf_putc(&text, '\n');
    for (size_t i = 0; i < record->headers.n; i++) {
        clean_line(&text, record->headers.at[i].name);
        buf_puts(&text, ": ");
        clean_line(&text, record->headers.at[i].value);
        buf_putc(&text, '\n');
    }
    buf_printf(&text, "body: %zu bytes\n\n", record->value.len);
    put_body(&text, record->value);
    fwrite(text.ptr, 1, text.len, stdout);
    buf_clear(&text);
}
