/* workflow.triage_verdict, schema_version 1: why a downstream thinks that it failed. */
#include "triage_verdict.h"

#include <jansson.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/mem.h"

#define RAW_MAX_BYTES     (256u << 10) /* bounds the document that is built to look into it */
#define VERDICT_MAX_BYTES (16u << 10)
#define SUMMARY_MAX       1000 /* characters, as all that follow */
#define REASON_MAX        300
#define EXCERPT_MAX       1000
#define SHORT_MAX         200
#define URL_MAX_CHARS     500
#define EVIDENCE_MAX      10

static struct str cut_characters(struct str s, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80 && n++ == max)
            return (struct str){ s.ptr, i };
    return s;
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* Copies a text member, trimmed and cut. False when it is there but no text, or blank; absent is
 * right unless needed. */
static bool copy_text(json_t *to, const json_t *from, const char *name, size_t max, bool needed)
{
    const json_t *value = json_object_get(from, name);
    if (is_absent(value))
        return !needed;
    struct str text = str_trim((struct str){ json_string_value(value), json_string_length(value) });
    if (!json_is_string(value) || text.len == 0)
        return false;
    text = cut_characters(text, max);
    return json_object_set_new(to, name, json_stringn(text.ptr, text.len)) == 0;
}

static bool is_one_of(const json_t *object, const char *name, const char *const *accepted)
{
    const char *text = json_string_value(json_object_get(object, name));
    for (; text && *accepted; accepted++)
        if (strcmp(text, *accepted) == 0)
            return true;
    return false;
}

/* It ends up as a link on a pull request: nothing that is read differently than it looks. */
static bool is_plain_url(struct str url)
{
    size_t scheme = str_starts(url, "https://") ? 8 : str_starts(url, "http://") ? 7 : 0;
    if (scheme == 0 || url.len == scheme || url.ptr[scheme] == '/')
        return false;
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.ptr[i] <= ' ' || url.ptr[i] == '@' || url.ptr[i] == 0x7f)
            return false;
    return true;
}

static bool copy_suspect(json_t *to, const json_t *from)
{
    const json_t *suspect = json_object_get(from, "suspected_upstream");
    if (is_absent(suspect))
        return true;
    static const char *const upstream[] = { "upstream", NULL };
    const json_t *pr = json_object_get(suspect, "pr");
    json_t *copy = json_object();
    json_object_set_new(to, "suspected_upstream", copy);
    if (!json_is_object(suspect) || !is_one_of(from, "category", upstream) ||
        !copy_text(copy, suspect, "commit", SHORT_MAX, false) ||
        !copy_text(copy, suspect, "reason", REASON_MAX, false))
        return false;
    if (!is_absent(pr) && (!json_is_integer(pr) || json_integer_value(pr) <= 0))
        return false;
    if (!is_absent(pr))
        json_object_set_new(copy, "pr", json_integer(json_integer_value(pr)));
    const char *commit = json_string_value(json_object_get(copy, "commit"));
    if (!commit)
        return !is_absent(pr);
    size_t len = strlen(commit);
    return len >= 7 && len <= 40 && strspn(commit, "0123456789abcdefABCDEF") == len;
}

/* A URL that is too long is left out: cut, it would lead elsewhere. */
static bool copy_log_url(json_t *to, const json_t *from)
{
    const json_t *value = json_object_get(from, "log_url");
    struct str url = { json_string_value(value), json_string_length(value) };
    if (is_absent(value))
        return true;
    if (!json_is_string(value) || !is_plain_url(url))
        return false;
    if (url.len <= URL_MAX_CHARS)
        json_object_set_new(to, "log_url", json_stringn(url.ptr, url.len));
    return true;
}

static bool copy_evidence(json_t *to, const json_t *from)
{
    const json_t *rows = json_object_get(from, "evidence");
    if (is_absent(rows))
        return true;
    if (!json_is_array(rows))
        return false;
    json_t *copy = json_array();
    json_object_set_new(to, "evidence", copy);
    for (size_t i = 0; i < json_array_size(rows) && i < EVIDENCE_MAX; i++) {
        const json_t *row = json_array_get(rows, i);
        json_t *kept = json_object();
        json_array_append_new(copy, kept);
        if (!json_is_object(row) || !copy_text(kept, row, "job", SHORT_MAX, false) ||
            !copy_text(kept, row, "test", SHORT_MAX, false) ||
            !copy_text(kept, row, "excerpt", EXCERPT_MAX, false) || !copy_log_url(kept, row))
            return false;
    }
    return true;
}

static bool copy_analyzer(json_t *to, const json_t *from)
{
    static const char *const names[] = { "name", "version", "model", "prompt_version" };
    const json_t *analyzer = json_object_get(from, "analyzer");
    if (is_absent(analyzer))
        return true;
    if (!json_is_object(analyzer))
        return false;
    json_t *copy = json_object();
    json_object_set_new(to, "analyzer", copy);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!copy_text(copy, analyzer, names[i], SHORT_MAX, false))
            return false;
    return true;
}

static bool copy_rest(json_t *to, const json_t *from)
{
    const json_t *reproduced = json_object_get(from, "reproduced_on_retry");
    if (!is_absent(reproduced) && !json_is_boolean(reproduced))
        return false;
    if (!is_absent(reproduced))
        json_object_set_new(to, "reproduced_on_retry", json_boolean(json_is_true(reproduced)));
    int64_t ms;
    const char *at = json_string_value(json_object_get(from, "analyzed_at"));
    if (at && clock_parse(str_of(at), &ms, NULL))
        return false;
    return copy_text(to, from, "analyzed_at", SHORT_MAX, false);
}

static bool is_version_1(const json_t *from)
{
    const json_t *version = json_object_get(from, "schema_version");
    const char *text = json_string_value(version);
    return text ? strcmp(text, "1") == 0
                : json_is_integer(version) && json_integer_value(version) == 1;
}

static bool normalize(json_t *to, const json_t *from)
{
    static const char *const categories[] = { "upstream", "backend", "infra",
                                              "flake",    "unknown", NULL };
    static const char *const confidences[] = { "high", "medium", "low", NULL };
    json_object_set_new(to, "schema_version", json_integer(1));
    return json_is_object(from) && is_version_1(from) && is_one_of(from, "category", categories) &&
           is_one_of(from, "confidence", confidences) &&
           copy_text(to, from, "category", SHORT_MAX, true) &&
           copy_text(to, from, "confidence", SHORT_MAX, true) &&
           copy_text(to, from, "summary", SUMMARY_MAX, true) && copy_suspect(to, from) &&
           copy_evidence(to, from) && copy_analyzer(to, from) && copy_rest(to, from);
}

/* Only evidence can make a verdict too large: rows go from the end. */
static char *dump_cut(json_t *verdict)
{
    for (;;) {
        char *text = json_dumps(verdict, JSON_COMPACT);
        json_t *evidence = json_object_get(verdict, "evidence");
        size_t rows = json_array_size(evidence);
        if (!text || strlen(text) <= VERDICT_MAX_BYTES)
            return text;
        free(text);
        if (rows == 0)
            return NULL;
        json_array_remove(evidence, rows - 1);
    }
}

char *triage_verdict_read(struct str json)
{
    if (json.len > RAW_MAX_BYTES)
        return NULL;
    json_auto_t *from = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL);
    json_auto_t *to = json_object();
    return from && normalize(to, from) ? dump_cut(to) : NULL;
}
