#include "record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"

struct record {
    FILE *file;
    json_t *rows; /* a ring: the row with number n is at n % keep */
    size_t keep;
    int64_t next;  /* the number of the next request, from 0 */
    int64_t first; /* the oldest that is still there */
};

enum err record_new(struct record **ret, const char *path, size_t keep, struct why *why)
{
    struct record *r = mem_alloc(1, sizeof(*r));

    r->keep = keep;
    r->rows = json_array();
    if (path) {
        r->file = fopen(path, "ae");
        if (!r->file) {
            record_free(r);
            return why_set(why, ERR_STOP, "cannot write %s: %s", path, strerror(errno));
        }
        setvbuf(r->file, NULL, _IOLBF, 0);
    }
    *ret = r;
    return OK;
}

void record_free(struct record *r)
{
    if (!r)
        return;
    if (r->file)
        fclose(r->file);
    json_decref(r->rows);
    free(r);
}

void record_clear(struct record *r)
{
    r->first = r->next;
}

/* A credential is recorded by its kind only. */
static json_t *credential(struct str value)
{
    ptrdiff_t blank = str_find(value, ' ');
    struct str scheme = { value.ptr, blank < 0 ? value.len : (size_t)blank };
    struct str secret = blank < 0 ? STR_NONE : str_trim(str_from(value, scheme.len));
    const char *kind = "opaque";

    if (str_starts(secret, "ghs_"))
        kind = "installation";
    else if (str_starts(secret, "eyJ"))
        kind = "jwt";
    return json_sprintf("%.*s (%s)", STR_ARG(scheme), kind);
}

static json_t *object_of(const struct headers *from)
{
    json_t *to = json_object();

    for (size_t i = 0; i < from->n; i++) {
        const struct header *h = &from->at[i];
        char name[128];
        json_t *value = str_eq_nocase(h->name, STR_LIT("authorization"))
                            ? credential(h->value)
                            : json_stringn(h->value.ptr, h->value.len);

        if (value && str_copy(name, sizeof(name), h->name))
            json_object_set_new(to, name, value);
        else
            json_decref(value);
    }
    return to;
}

/* JSON as a document, else the text, else null. */
static json_t *body_of(const struct call *call)
{
    json_t *text;

    if (call->body)
        return json_incref(call->body);
    text = call->text.len ? json_stringn(call->text.ptr, call->text.len) : NULL;
    return text ? text : json_null();
}

static void row_keep(struct record *r, json_t *row)
{
    size_t place = (size_t)r->next % r->keep;

    if (place < json_array_size(r->rows))
        json_array_set(r->rows, place, row);
    else
        json_array_append(r->rows, row);
    r->next++;
    if (r->next - r->first > (int64_t)r->keep)
        r->first = r->next - (int64_t)r->keep;
}

void record_add(struct record *r, const struct call *call, const struct record_outcome *outcome)
{
    json_t *row = json_pack("{s:I, s:I, s:s%, s:s%, s:o, s:o, s:o, s:I, s:i, s:s?, s:I}", "n",
                            (json_int_t)r->next, "at_ms", (json_int_t)call->now_ms, "method",
                            call->method.ptr, call->method.len, "path", call->path.ptr,
                            call->path.len, "query", object_of(call->query), "headers",
                            object_of(call->headers), "body", body_of(call), "body_bytes",
                            (json_int_t)call->text.len, "status", outcome->status, "fault",
                            outcome->fault, "delay_ms", (json_int_t)outcome->delay_ms);

    if (!row)
        return; /* the path is not UTF-8: nothing that a test could ask for */
    if (r->file) {
        json_dumpf(row, r->file, JSON_COMPACT);
        fputc('\n', r->file);
    }
    row_keep(r, row);
    json_decref(row);
}

json_t *record_since(const struct record *r, int64_t since)
{
    json_t *list = json_array();

    if (since < r->first)
        since = r->first;
    for (int64_t n = since; n < r->next; n++)
        json_array_append(list, json_array_get(r->rows, (size_t)n % r->keep));
    return list;
}
