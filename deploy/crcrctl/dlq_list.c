/* `crcrctl dlq list` and `show`: what is in the dead-letter queue. */
#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "dlq_verbs.h"
#include "out.h"
#include "repos.h"
#include "scan.h"

#define TEXT_MAX (256u << 20) /* a body of 26 MiB whose every byte is escaped, and indented */

/* ---- one entry ------------------------------------------------------------------------------ */

static const char *source_of(const struct dlq_entry *e, const struct topics *topics)
{
    enum topic topic = topics_find(topics, str_of(e->source_topic));
    return topic == TOPIC_COUNT ? e->source_topic : topic_base_name(topic);
}

static void put_line(struct buf *to, const struct dlq_entry *e, const struct topics *topics)
{
    char at[CLOCK_TEXT_SIZE], place[DLQ_PLACE_SIZE], repos[REPO_MAX + 16];
    clock_format(e->parked_ms, at);
    dlq_place_text(e->at, place);
    put_padded(to, place, 11);
    put_padded(to, at, 25);
    put_padded(to, e->class, 10);
    put_padded(to, source_of(e, topics), 12);
    put_padded(to, *e->delivery ? e->delivery : e->key, 37);
    repos_short(str_of(e->repos), repos, sizeof(repos));
    put_padded(to, *repos ? repos : e->key, 25);
    if (e->state != DLQ_OPEN)
        buf_printf(to, "(%s) ", dlq_state_name(e->state));
    clean_line(to, str_of(e->error));
    repos_put_rest(to, str_of(e->repos));
}

static void put_json(struct buf *to, const struct dlq_entry *e, const struct topics *topics)
{
    char place[DLQ_PLACE_SIZE];
    dlq_place_text(e->at, place);
    json_element(to);
    json_text(to, "position", place);
    json_int(to, "partition", e->at.partition);
    json_int(to, "offset", e->at.offset);
    json_time(to, "parked_at", e->parked_ms);
    json_text(to, "state", dlq_state_name(e->state));
    json_text(to, "class", e->class);
    json_text(to, "source", source_of(e, topics));
    json_text(to, "key", e->key);
    json_text(to, "delivery", e->delivery);
    repos_json(to, str_of(e->repos));
    json_text(to, "error", e->error);
    buf_putc(to, '}');
}

void dlq_print(const struct dlq_entry *entry, bool json, const struct topics *topics)
{
    struct buf CLEANUP(buf_clear) line;
    buf_init(&line, 16u << 10);
    (json ? put_json : put_line)(&line, entry, topics);
    printf("%.*s\n", STR_ARG(buf_str(&line)));
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

/* All of one record: headers, and its body. */
static void print_record(const struct record *record)
{
    struct buf CLEANUP(buf_clear) text;
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
    ctl_put(&text);
}

/* ---- the queue ------------------------------------------------------------------------------ */

int dlq_filter_of(const struct ctl *ctl, const struct args *args, struct dlq_filter *ret)
{
    *ret = (struct dlq_filter){ .class = str_of(args->class),
                                .repo = str_of(args->repo),
                                .delivery = str_of(args->delivery),
                                .source = str_of(args->source),
                                .since_ms = args->since_ms };
    for (size_t i = 0; i < args->n_names; i++)
        if (!dlq_place_parse(str_of(args->names[i]), &ret->places[ret->n_places++]))
            return ctl_bad(ctl, "position", args->names[i],
                           "PARTITION@OFFSET as `dlq list` shows it");
    return CTL_OK;
}

struct reading {
    struct dlq *dlq;
    struct newest *rows; /* NULL: not wanted */
    const char *results;
};

static bool collect(void *opaque, const struct record *record)
{
    const struct reading *r = opaque;
    dlq_add(r->dlq, record);
    if (r->rows && str_is(headers_get(&record->headers, "source_topic"), r->results))
        newest_want(r->rows, record->key);
    return true;
}

int dlq_read(struct ctl *ctl, struct dlq *ret, struct newest *rows)
{
    struct scan scan = { .topics = SCAN(TOPIC_DLQ) };
    struct reading reading = { ret, rows, ctl->topics.name[TOPIC_RESULTS] };
    struct why why;
    dlq_init(ret);
    enum err err = scan_all(&scan, ctl, collect, &reading, &why);
    dlq_finish(ret);
    if (!err)
        return CTL_OK;
    dlq_clear(ret);
    return ctl_fail(ctl, err, &why);
}

int verb_dlq_list(struct ctl *ctl, const struct args *args)
{
    struct dlq_filter filter;
    struct dlq dlq;
    size_t shown = 0, resolved = 0;
    int code = dlq_filter_of(ctl, args, &filter);
    if (code == CTL_OK)
        code = dlq_read(ctl, &dlq, NULL);
    if (code != CTL_OK)
        return code;
    for (size_t i = 0; i < dlq.n; i++) {
        const struct dlq_entry *entry = dlq.entries[i];
        if (!dlq_matches(&filter, &ctl->topics, entry))
            continue;
        resolved += entry->state != DLQ_OPEN;
        if (entry->state != DLQ_OPEN && !args->all)
            continue;
        if (!shown++ && !args->json)
            printf("%-10s  %-24s  %-9s  %-11s  %-36s  %-24s  %s\n", "WHERE", "WHEN", "CLASS",
                   "SOURCE", "DELIVERY", "REPO", "ERROR");
        dlq_print(entry, args->json, &ctl->topics);
    }
    if (!args->json)
        printf("%zu %s, %zu resolved%s\n", shown, args->all ? "shown" : "open", resolved,
               resolved && !args->all ? " (--all shows them)" : "");
    dlq_clear(&dlq);
    return CTL_OK;
}

struct showing {
    const struct dlq_place *at;
    struct dlq *dlq;
    bool found;
};

static bool show_one(void *opaque, const struct record *record)
{
    struct showing *s = opaque;
    dlq_add(s->dlq, record);
    if (record->at.partition != s->at->partition || record->at.offset != s->at->offset)
        return true;
    s->found = true;
    print_record(record);
    return true;
}

int verb_dlq_show(struct ctl *ctl, const struct args *args)
{
    struct scan scan = { .topics = SCAN(TOPIC_DLQ) };
    struct dlq_filter filter;
    struct dlq dlq;
    struct why why;
    int code = dlq_filter_of(ctl, args, &filter);
    if (code != CTL_OK)
        return code;
    struct showing showing = { .at = &filter.places[0], .dlq = &dlq };
    dlq_init(&dlq);
    enum err err = scan_all(&scan, ctl, show_one, &showing, &why); /* a resolution may come later */
    dlq_finish(&dlq);
    const struct dlq_entry *entry = dlq_find(&dlq, *showing.at);
    if (!err && !showing.found)
        err = why_set(&why, ERR_REFUSE, "nothing is there, or it is older than 30 days");
    if (!err)
        printf("state: %s\n", entry ? dlq_state_name(entry->state) : "a resolution itself");
    else
        code = ctl_fail(ctl, err, &why);
    dlq_clear(&dlq);
    return code;
}
