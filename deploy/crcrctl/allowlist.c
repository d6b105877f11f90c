/* The topic allowlist, and the verbs `allowlist …`. A copy of `allowlist save` has every version,
 * with the headers that say since when it is in force: tenure is counted from them, and nothing
 * else has it. A line a record, as `kcat -J` writes it:
 *
 *   {"key":"allowlist","headers":["source","https://…","fetched_ms","17…"],"payload":"L1: …"} */
#include "allowlist.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../common/base/json_text.h"
#include "../../common/crypto/hmac.h"
#include "../../common/model/json_member.h"
#include "../../common/model/providers.h"
#include "audit.h"
#include "out.h"
#include "scan.h"

#define FETCHED   "fetched_ms" /* header: since when a version is in force */
#define COPY_MAX  (1u << 30)
#define LINE_MAX  (64u << 20) /* a record of 8 MiB whose every byte is escaped */
#define PATH_SIZE 4096
#define FAILED_MS 60000 /* with --every, after a failure */

/* ---- the topic ------------------------------------------------------------------------------ */

/* What cannot be read leaves in force what was, as in the daemons. */
static bool version_take(void *opaque, const struct record *record)
{
    struct allowlist_read *r = opaque;
    struct str source = headers_get(&record->headers, "source");
    struct demotions *demotions;
    struct allowlist *list;
    struct why why;
    if (str_is(record->key, "allowlist") && record->value.ptr) {
        if (allowlist_parse(&list, "allowlist", record->value, &why)) {
            r->unreadable++;
            return true;
        }
        allowlist_free(r->list);
        free(r->text);
        free(r->source);
        r->list = list;
        r->text = str_dup(record->value);
        r->source = str_dup(source.len ? source : STR_LIT("an unknown source"));
        sha256_hex(record->value, r->sha);
        r->fetched_ms = headers_get_i64(&record->headers, "fetched_ms", record->timestamp_ms);
        tenure_add(r->tenure, list, r->fetched_ms);
    } else if (str_is(record->key, DEMOTIONS_KEY) && record->value.ptr) {
        if (demotions_from_json(record->value, &demotions, &why)) {
            r->unreadable++;
            return true;
        }
        demotions_free(r->demotions);
        r->demotions = demotions;
    }
    return true;
}

enum err allowlist_read(const struct ctl *ctl, struct allowlist_read *ret, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_ALLOWLIST), .quiet = true };
    *ret = (struct allowlist_read){ .tenure = tenure_new() };
    return scan_all(&scan, ctl, version_take, ret, why);
}

void allowlist_read_clear(struct allowlist_read *r)
{
    tenure_free(r->tenure);
    allowlist_free(r->list);
    demotions_free(r->demotions);
    free(r->text);
    free(r->source);
}

/* ---- allowlist check ------------------------------------------------------------------------ */

int verb_allowlist_check(struct ctl *ctl, const struct args *args)
{
    const char *file = args->names[0];
    struct buf CLEANUP(buf_clear) text = BUF_INIT(ALLOWLIST_MAX_BYTES);
    struct allowlist *list;
    size_t n[5] = { 0 };
    struct why why;
    (void)ctl;
    enum err err = ctl_read_file(&text, file, &why);
    if (!err)
        err = allowlist_parse(&list, file, buf_str(&text), &why);
    if (err) {
        buf_reset(&text);
        clean_line(&text, str_of(why.text));
        fprintf(stderr, "%s\n", text.ptr); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    for (size_t i = 0; i < allowlist_size(list); i++)
        n[allowlist_at(list, i)->level]++;
    if (args->json)
        put_json(NULL, "{valid:%i repositories:%zu L1:%zu L2:%zu L3:%zu L4:%zu}", true,
                 allowlist_size(list), n[1], n[2], n[3], n[4]);
    else
        printf("%s: valid: %zu repositories (L1 %zu, L2 %zu, L3 %zu, L4 %zu)\n", file,
               allowlist_size(list), n[1], n[2], n[3], n[4]);
    allowlist_free(list);
    return CTL_OK;
}

/* ---- allowlist save ------------------------------------------------------------------------- */

/* No daemon takes a record that is refused here. */
static enum err record_check(struct str key, struct str value, struct why *why)
{
    struct allowlist *list = NULL;
    struct providers *providers = NULL;
    struct demotions *demotions = NULL;
    enum err err = ERR_REFUSE;
    if (!value.ptr)
        return why_set(why, ERR_REFUSE, "it has no payload");
    if (str_is(key, "allowlist"))
        err = allowlist_parse(&list, "allowlist", value, why);
    else if (str_is(key, "providers"))
        err = providers_parse(&providers, "providers", value, why);
    else if (str_is(key, DEMOTIONS_KEY))
        err = demotions_from_json(value, &demotions, why);
    else
        why_set(why, err, "its key is none of allowlist, providers, " DEMOTIONS_KEY);
    allowlist_free(list);
    providers_free(providers);
    demotions_free(demotions);
    return err;
}

struct saving {
    FILE *to;
    size_t saved, refused;
};

static bool record_save(void *opaque, const struct record *record)
{
    struct saving *s = opaque;
    const struct headers *h = &record->headers;
    struct buf CLEANUP(buf_clear) line = BUF_INIT(LINE_MAX);
    struct why why;
    if (record_check(record->key, record->value, &why)) {
        s->refused++;
        return true;
    }
    buf_putc(&line, '{');
    json_put_text(&line, "key", record->key);
    json_put_begin(&line, "headers", '[');
    for (size_t i = 0; i < 2 * h->n; i++) {
        json_put_comma(&line);
        json_text_put(&line, i % 2 ? h->at[i / 2].value : h->at[i / 2].name);
    }
    if (!headers_get(h, FETCHED).ptr) { /* written by hand: a restore needs one */
        json_put_comma(&line);
        buf_printf(&line, "\"" FETCHED "\",\"%" PRId64 "\"", record->timestamp_ms);
    }
    buf_putc(&line, ']');
    json_put_text(&line, "payload", record->value);
    s->saved++;
    return fprintf(s->to, "%s}\n", line.ptr) > 0;
}

/* A folder gets a file for the day of the month: those of a month stay. */
static void copy_name(char path[PATH_SIZE], const char *file)
{
    struct stat at;
    time_t now = time(NULL);
    char name[sizeof("/allowlist-31.jsonl")] = "";
    if (!stat(file, &at) && S_ISDIR(at.st_mode))
        strftime(name, sizeof(name), "/allowlist-%d.jsonl", gmtime(&now));
    snprintf(path, PATH_SIZE, "%s%s", file, name);
}

static enum err topic_save(const struct ctl *ctl, FILE *to, size_t *saved, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_ALLOWLIST), .quiet = true };
    struct saving s = { .to = to };
    enum err err = scan_all(&scan, ctl, record_save, &s, why);
    *saved = s.saved;
    if (s.refused)
        ctl_say(ctl, "%zu records that no daemon takes were left out", s.refused);
    if (!err && (ferror(to) || fflush(to)))
        return why_set(why, ERR_REFUSE, "it cannot be written: %s", strerror(errno));
    if (!err && !s.saved)
        return why_set(why, ERR_REFUSE, "nothing is in %s", ctl->topics.name[TOPIC_ALLOWLIST]);
    return err;
}

/* The file is the new copy whole, or what it was before. */
static enum err file_save(const struct ctl *ctl, const struct args *args, struct why *why)
{
    char path[PATH_SIZE], part[PATH_SIZE + 16];
    struct stat at;
    size_t saved = 0;
    copy_name(path, args->names[0]);
    if (!stat(path, &at) && !S_ISREG(at.st_mode))
        return why_set(why, ERR_REFUSE, "%s is no regular file; - is standard output", path);
    FORMAT(part, "%s.part-XXXXXX", path); /* two may save at once */
    int fd = mkstemp(part);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to)
        return why_set(why, ERR_REFUSE, "%s: %s", part, strerror(errno));
    enum err err = topic_save(ctl, to, &saved, why);
    if (!err && (fsync(fd) || rename(part, path)))
        err = why_set(why, ERR_REFUSE, "%s: %s", path, strerror(errno));
    fclose(to);
    if (err)
        unlink(part);
    else if (args->json)
        put_json(NULL, "{file:%s records:%zu}", path, saved);
    else
        printf("%zu records saved in %s\n", saved, path);
    return err;
}

int verb_allowlist_save(struct ctl *ctl, const struct args *args)
{
    bool file = args->n_names && strcmp(args->names[0], "-") != 0;
    int64_t wait_ms;
    size_t saved;
    struct why why;
    int code;
    if (args->every_ms && !file)
        return ctl_bad(ctl, "--every", "without FILE", "with a file or a folder");
    ctl_catch_signals();
    setvbuf(stdout, NULL, file ? _IOLBF : _IOFBF, BUFSIZ);
    do {
        enum err err = file ? file_save(ctl, args, &why) : topic_save(ctl, stdout, &saved, &why);
        code = err ? ctl_fail(ctl, err, &why) : CTL_OK;
        wait_ms = err && args->every_ms > FAILED_MS ? FAILED_MS : args->every_ms;
    } while (args->every_ms && ctl_wait(wait_ms));
    return args->every_ms ? CTL_OK : code;
}

/* ---- allowlist restore ---------------------------------------------------------------------- */

static enum err line_restore(const struct ctl *ctl, struct topic_writer *writer,
                             const json_t *document, struct why *why)
{
    const json_t *list = json_object_get(document, "headers");
    struct str key = json_member(document, "key"), payload = json_member(document, "payload");
    struct headers headers;
    headers_init(&headers);
    for (size_t i = 0; i + 1 < json_array_size(list); i += 2)
        headers_put_str(&headers, str_of(json_string_value(json_array_get(list, i))),
                        str_of(json_string_value(json_array_get(list, i + 1))));
    enum err err = record_check(key, payload, why);
    if (!err && str_is(key, "allowlist") && headers_get_i64(&headers, FETCHED, 0) <= 0)
        err = why_set(why, ERR_REFUSE, "it has no header " FETCHED ": since when it is in force");
    if (err || !writer)
        return err;
    return topic_writer_put_wait(writer, ctl->topics.name[TOPIC_ALLOWLIST], key, payload, &headers,
                                 NULL, why);
}

/* writer NULL: the lines are only checked. */
static enum err copy_restore(const struct ctl *ctl, struct topic_writer *writer, const char *file,
                             struct str copy, size_t *restored, struct why *why)
{
    json_error_t fault;
    struct str line, first = STR_NONE;
    enum err err = OK;
    for (*restored = 0; !err && str_split(&copy, '\n', &line); *restored += !err) {
        json_t *document = json_loadb(line.ptr, line.len, 0, &fault);
        err =
            !document ? why_set(why, ERR_REFUSE, "not JSON: %s", fault.text)
            : first.ptr && str_eq(line, first)
                ? why_set(why, ERR_REFUSE, "the first line again: one copy is wanted, not several")
                : line_restore(ctl, writer, document, why);
        first = first.ptr ? first : line;
        json_decref(document);
        if (err)
            (void)why_prefix(why, err, "%s:%zu", file, *restored + 1);
    }
    return err || *restored ? err : why_set(why, ERR_REFUSE, "%s: nothing is in it", file);
}

static bool first_found(void *opaque, const struct record *record)
{
    (void)opaque;
    (void)record;
    return false;
}

/* Behind what is there old versions would come into force again, and tenure would begin anew. */
static enum err empty_check(const struct ctl *ctl, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_ALLOWLIST), .quiet = true };
    enum err err = scan_all(&scan, ctl, first_found, NULL, why);
    return err || !scan.read ? err
                             : why_set(why, ERR_REFUSE,
                                       "%s is not empty, and a copy goes into a new topic: nothing "
                                       "was written",
                                       ctl->topics.name[TOPIC_ALLOWLIST]);
}

int verb_allowlist_restore(struct ctl *ctl, const struct args *args)
{
    const char *file = args->names[0];
    struct buf CLEANUP(buf_clear) copy = BUF_INIT(COPY_MAX);
    struct topic_writer *writer = NULL;
    struct audit audit = { .writer = NULL };
    size_t restored = 0;
    struct why why;
    enum err err = ctl_read_file(&copy, file, &why);
    if (!err)
        err = copy_restore(ctl, NULL, file, buf_str(&copy), &restored, &why);
    if (!err)
        err = empty_check(ctl, &why);
    if (!err)
        err = ctl_writer(ctl, TOPIC_ALLOWLIST, &writer, &why);
    if (!err)
        err = audit_begin(&audit, ctl, args, &why);
    if (!err)
        err = copy_restore(ctl, writer, file, buf_str(&copy), &restored, &why);
    if (err && writer && restored)
        (void)why_prefix(&why, err,
                         "%zu records are written: delete the topic, make it again, restore",
                         restored);
    int code = err ? ctl_fail(ctl, err, &why) : CTL_OK;
    audit_end(&audit, ctl, code, "%zu records restored%s%s", restored, err ? ": " : "",
              err ? why.text : "");
    if (!err && args->json)
        put_json(NULL, "{records:%zu}", restored);
    else if (!err)
        printf("%zu records restored to %s\n", restored, ctl->topics.name[TOPIC_ALLOWLIST]);
    topic_writer_free(writer);
    return code;
}
