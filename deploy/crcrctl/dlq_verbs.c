/* `crcrctl dlq list`, `show`, `replay` and `drop`. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_text.h"
#include "audit.h"
#include "dlq.h"
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

/* The columns of an entry; narrow ones (0: none) leave room for the last. */
static void put_columns(struct buf *to, const char *const cells[6])
{
    static const struct {
        size_t wide, narrow;
    } columns[6] = { { 11, 8 }, { 25, 0 }, { 10, 9 }, { 12, 11 }, { 37, 8 }, { 25, 18 } };
    for (size_t i = 0; i < 6; i++)
        if (!out_narrow())
            put_padded(to, cells[i], columns[i].wide);
        else if (columns[i].narrow)
            (i < 4 ? put_padded : put_cell)(to, cells[i], columns[i].narrow);
}

static void print_head(void)
{
    struct buf CLEANUP(buf_clear) line = BUF_INIT(1000);
    put_columns(&line, (const char *[]){ "WHERE", "WHEN", "CLASS", "SOURCE", "DELIVERY", "REPO" });
    buf_puts(&line, "ERROR");
    ctl_put_line(buf_str(&line), false);
}

/* A line an entry, or a JSON object. */
static void print_entry(const struct dlq_entry *e, bool json, const struct topics *topics)
{
    char at[CLOCK_TEXT_SIZE], position[DLQ_POSITION_SIZE], repos[REPO_MAX + 16];
    struct str all = str_of(e->repos);
    struct buf CLEANUP(buf_clear) line = BUF_INIT(16u << 10);
    dlq_position_text(e->at, position);
    if (json) {
        put_json(&line,
                 "{position:%s partition:%d offset:%" PRId64 " parked_at:%jd state:%s class:%s "
                 "source:%s key:%s delivery:%s error:%s",
                 position, (int)e->at.partition, e->at.offset, (intmax_t)e->parked_ms,
                 dlq_state_name(e->state), e->class, source_of(e, topics), e->key, e->delivery,
                 e->error);
        repos_json(&line, all);
        buf_putc(&line, '}');
    } else {
        clock_format(e->parked_ms, at);
        repos_short(all, repos, sizeof(repos));
        put_columns(&line, (const char *[]){ position, at, e->class, source_of(e, topics),
                                             *e->delivery ? e->delivery : e->key,
                                             *repos ? repos : e->key });
        if (e->state != DLQ_OPEN)
            buf_printf(&line, "(%s) ", dlq_state_name(e->state));
        clean_line(&line, str_of(e->error));
        repos_put_rest(&line, all);
    }
    ctl_put_line(buf_str(&line), json);
}

/* All of one record: headers, and its body, pretty when it is JSON, else as it is, either way
 * harmless; or an object that is not closed, where a body that is no JSON is a text. */
static void put_record(struct buf *text, const struct record *record, bool json)
{
    struct str body = record->value;
    json_t *document = body.len ? json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL) : NULL;
    char *pretty = json_dumps(document, json ? JSON_COMPACT : JSON_INDENT(2));
    buf_puts(text, json ? "{\"key\":" : "key: ");
    (json ? json_text_put : clean_line)(text, record->key);
    buf_puts(text, json ? ",\"headers\":{" : "\n");
    for (size_t i = 0; i < record->headers.n; i++) {
        buf_puts(text, json && i ? "," : "");
        (json ? json_text_put : clean_line)(text, record->headers.at[i].name);
        buf_puts(text, json ? ":" : ": ");
        (json ? json_text_put : clean_line)(text, record->headers.at[i].value);
        buf_puts(text, json ? "" : "\n");
    }
    if (json)
        buf_puts(text, "},\"body\":");
    else
        buf_printf(text, "body: %zu bytes\n\n", body.len);
    (json ? pretty ? buf_put : json_text_put : clean_text)(text, pretty ? str_of(pretty) : body);
    buf_puts(text, json ? "" : "\n");
    free(pretty);
    json_decref(document);
}

/* ---- the queue ------------------------------------------------------------------------------ */

static struct dlq_filter filter_of(const struct args *args)
{
    struct dlq_filter f = { .class = str_of(args->class),
                            .repo = str_of(args->repo),
                            .delivery = str_of(args->delivery),
                            .source = str_of(args->source),
                            .since_ms = args->since_ms };
    for (size_t i = 0; i < args->n_names; i++) /* positions they are: args_parse */
        (void)dlq_position_parse(str_of(args->names[i]), &f.positions[f.n_positions++]);
    return f;
}

struct dlq_reading {
    struct dlq *dlq;
    const struct dlq_position *show; /* the record to print; NULL: none */
    bool json;
    struct buf shown; /* empty: it has not come */
};

static bool collect(void *opaque, const struct record *record)
{
    struct dlq_reading *r = opaque;
    dlq_add(r->dlq, dlq_position_of(record), record->timestamp_ms, record->key, &record->headers);
    if (r->show && record->at.partition == r->show->partition &&
        record->at.offset == r->show->offset)
        put_record(&r->shown, record, r->json);
    return true;
}

/* Reads the queue; r->dlq is finished, and the caller's to clear. CTL_OK or what to exit
 * with. */
static int read_queue(struct ctl *ctl, struct dlq_reading *r)
{
    struct scan scan = { .topics = SCAN(TOPIC_DLQ) };
    struct why why;
    *r->dlq = (struct dlq){ .open_max = 0 };
    enum err err = scan_all(&scan, ctl, collect, r, &why);
    dlq_sort(r->dlq, false);
    if (!err)
        return CTL_OK;
    dlq_clear(r->dlq);
    return ctl_fail(ctl, err, &why);
}

/* ---- dlq list ------------------------------------------------------------------------------- */

int verb_dlq_list(struct ctl *ctl, const struct args *args)
{
    const struct dlq_filter filter = filter_of(args);
    struct dlq dlq;
    size_t shown = 0, resolved = 0;
    int code = read_queue(ctl, &(struct dlq_reading){ .dlq = &dlq });
    if (code != CTL_OK)
        return code;
    for (const struct dlq_entry *entry = NULL; (entry = dlq_next(&dlq, entry));) {
        if (!dlq_matches(&filter, &ctl->topics, entry))
            continue;
        resolved += entry->state != DLQ_OPEN;
        if (entry->state != DLQ_OPEN && !args->all)
            continue;
        if (!shown++ && !args->json)
            print_head();
        print_entry(entry, args->json, &ctl->topics);
    }
    if (!args->json)
        printf("%zu %s, %zu resolved%s\n", shown, args->all ? "shown" : "open", resolved,
               resolved && !args->all ? " (--all shows them)" : "");
    dlq_clear(&dlq);
    return CTL_OK;
}

/* ---- dlq show ------------------------------------------------------------------------------- */

/* A resolution may come after the record: all of the queue is read. */
int verb_dlq_show(struct ctl *ctl, const struct args *args)
{
    const struct dlq_filter filter = filter_of(args);
    struct dlq dlq;
    struct dlq_reading reading = {
        .dlq = &dlq, .show = &filter.positions[0], .json = args->json, .shown.max = TEXT_MAX
    };
    int code = read_queue(ctl, &reading);
    if (code != CTL_OK)
        return code;
    const struct dlq_entry *entry = dlq_find(&dlq, filter.positions[0]);
    if (reading.shown.len) {
        const char *state = entry ? dlq_state_name(entry->state) : "a resolution itself";
        if (args->json)
            json_put_string(&reading.shown, "state", state);
        ctl_put(&reading.shown);
        printf(args->json ? "}\n" : "state: %s\n", state);
    } else {
        ctl_say(ctl, "nothing is there, or it is older than 30 days");
        code = CTL_PROBLEM;
    }
    buf_clear(&reading.shown);
    dlq_clear(&dlq);
    return code;
}

/* ---- dlq replay, dlq drop ------------------------------------------------------------------- */

/* Each entry is put back or dropped, and resolved by a record of its own afterwards. */
struct resolving {
    struct ctl *ctl;
    const struct args *args;
    struct dlq_filter filter;
    enum dlq_state to;
    struct dlq dlq;
    struct topic_writer *writer; /* NULL in a dry run */
    struct audit audit;
    struct pace pace;
    size_t chosen, done, unfit, resolved_before, absent;
    enum err err; /* what ended it */
    struct why why;
};

static void choose(struct resolving *r)
{
    const struct dlq_filter *f = &r->filter;
    for (size_t i = 0; i < f->n_positions; i++) {
        if (dlq_find(&r->dlq, f->positions[i]))
            continue;
        r->absent++;
        ctl_say(r->ctl, "%" PRId32 "@%" PRId64 ": no entry is there", f->positions[i].partition,
                f->positions[i].offset);
    }
    for (struct dlq_entry *entry = NULL; (entry = dlq_next(&r->dlq, entry));) {
        if (!dlq_matches(f, &r->ctl->topics, entry))
            continue;
        entry->chosen = entry->state == DLQ_OPEN;
        r->chosen += entry->chosen;
        r->resolved_before += !entry->chosen;
    }
}

/* ERR_REFUSE: this one alone cannot be. */
static enum err resolve_one(struct resolving *r, const struct dlq_entry *entry,
                            const struct record *record)
{
    enum topic target = TOPIC_DLQ;
    struct headers headers;
    enum err err = OK;
    if (r->to == DLQ_REPLAYED)
        err = dlq_unpark(&r->ctl->topics, record, &target, &headers, &r->why);
    if (!err && r->writer && r->to == DLQ_REPLAYED)
        err = topic_writer_put_wait(r->writer, r->ctl->topics.name[target], record->key,
                                    record->value, &headers, NULL, &r->why);
    if (!err && r->writer) {
        dlq_resolution_headers(record, r->to, clock_wall_ms(), &headers);
        err = topic_writer_put_wait(r->writer, r->ctl->topics.name[TOPIC_DLQ], record->key,
                                    STR_LIT(""), &headers, NULL, &r->why);
        if (err == ERR_REFUSE && r->to == DLQ_REPLAYED) /* the next run puts it back again */
            return why_prefix(&r->why, ERR_STOP,
                              "%" PRId32 "@%" PRId64 " is put back, but not noted",
                              entry->at.partition, entry->at.offset);
    }
    if (err)
        return err;
    struct dlq_entry done = *entry;
    done.state = r->args->json && r->writer ? r->to : DLQ_OPEN;
    progress_end();
    if (!r->args->json)
        printf("%s%s%s%s  ", r->writer ? "" : "would be ", dlq_state_name(r->to),
               r->to == DLQ_REPLAYED ? " to " : "",
               r->to == DLQ_REPLAYED ? topic_base_name(target) : "");
    print_entry(&done, r->args->json, &r->ctl->topics);
    return OK;
}

static bool on_record(void *opaque, const struct record *record)
{
    struct resolving *r = opaque;
    const struct dlq_position at = dlq_position_of(record);
    struct dlq_entry *entry = dlq_find(&r->dlq, at);
    if (!entry || !entry->chosen)
        return true;
    if (!pace_wait(&r->pace))
        return false;
    entry->chosen = false;
    enum err err = resolve_one(r, entry, record);
    if (err == ERR_REFUSE) {
        r->unfit++;
        ctl_say(r->ctl, "%" PRId32 "@%" PRId64 ": %s", at.partition, at.offset, r->why.text);
    } else if (err) {
        r->err = err;
    } else {
        r->done++;
    }
    progress_show(r->ctl, "%s … %zu of %zu", dlq_state_name(r->to), r->done, r->chosen);
    return !r->err && r->done + r->unfit < r->chosen;
}

/* ---- all that were chosen ------------------------------------------------------------------- */

/* The records themselves are read again: a queue may hold more than fits into memory. */
static void resolve_all(struct resolving *r)
{
    struct scan scan = { .topics = SCAN(TOPIC_DLQ), .quiet = true };
    if (!r->args->dry_run)
        r->err = ctl_writer(r->ctl, TOPIC_DLQ, &r->writer, &r->why);
    if (!r->err && !r->args->dry_run)
        r->err = audit_begin(&r->audit, r->ctl, r->args, &r->why);
    if (r->err)
        return;
    enum err err = scan_run(&scan, r->ctl, on_record, r, &r->why);
    progress_end();
    if (!r->err)
        r->err = err;
}

static int resolve_report(const struct resolving *r)
{
    size_t left = r->chosen - r->done - r->unfit;
    bool nothing = !r->chosen && !r->resolved_before;
    int code = CTL_OK;
    if (r->args->json)
        put_json(NULL, "{done:%zu state:%s resolved_before:%zu cannot:%zu left:%zu dry_run:%i}",
                 r->done, dlq_state_name(r->to), r->resolved_before, r->unfit, left,
                 r->args->dry_run);
    else
        printf("%zu %s%s, %zu resolved before, %zu cannot be%s\n", r->done,
               r->args->dry_run ? "would be " : "", dlq_state_name(r->to), r->resolved_before,
               r->unfit, r->args->dry_run ? " (dry run: nothing was written)" : "");
    if (r->err)
        code = ctl_fail(r->ctl, r->err, &r->why);
    if (left)
        ctl_say(r->ctl, "%zu are left; run it again to go on", left);
    if (nothing)
        ctl_say(r->ctl, "nothing like that is there; `crcrctl dlq list` shows what is");
    if (code == CTL_OK && (left || r->unfit || r->absent || nothing))
        code = CTL_PROBLEM;
    return code;
}

static int resolve(struct ctl *ctl, const struct args *args, enum dlq_state to)
{
    struct resolving r = {
        .ctl = ctl, .args = args, .filter = filter_of(args), .to = to, .pace.per_second = args->rate
    };
    if (!args->n_names && !args->class && !args->repo && !args->delivery && !args->source &&
        !args->since_ms)
        return ctl_bad(ctl, "arguments", "", "positions, or a filter (--since 30d: all)");
    int code = read_queue(ctl, &(struct dlq_reading){ .dlq = &r.dlq });
    if (code != CTL_OK)
        return code;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* also of one that is killed it is seen what it did */
    choose(&r);
    if (r.chosen)
        resolve_all(&r);
    code = resolve_report(&r);
    audit_end(&r.audit, ctl, code, "%zu %s, %zu cannot be, of %zu", r.done, dlq_state_name(to),
              r.unfit, r.chosen);
    topic_writer_free(r.writer);
    dlq_clear(&r.dlq);
    return code;
}

int verb_dlq_replay(struct ctl *ctl, const struct args *args)
{
    return resolve(ctl, args, DLQ_REPLAYED);
}

int verb_dlq_drop(struct ctl *ctl, const struct args *args)
{
    return resolve(ctl, args, DLQ_DROPPED);
}
