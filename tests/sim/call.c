#include "call.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct str call_text(const struct call *call, const char *member)
{
    const json_t *value = json_object_get(call->body, member);

    if (!json_is_string(value))
        return STR_NONE;
    return (struct str){ json_string_value(value), json_string_length(value) };
}

int64_t call_id(const struct call *call, size_t part)
{
    uint64_t id;

    return str_to_u64(call->part[part], &id) && id <= INT64_MAX ? (int64_t)id : -1;
}

int64_t call_query(const struct call *call, const char *name, int64_t fallback)
{
    return headers_get_i64(call->query, name, fallback);
}

void reply_init(struct reply *r)
{
    *r = (struct reply){ .headers = json_object() };
}

static void content_clear(struct reply *r)
{
    json_decref(r->body);
    free(r->text);
    r->body = NULL;
    r->text = NULL;
    r->text_len = 0;
    r->content_type = NULL;
}

void reply_clear(struct reply *r)
{
    content_clear(r);
    json_decref(r->headers);
    r->headers = NULL;
}

void reply_json(struct reply *r, int status, json_t *body)
{
    content_clear(r);
    r->status = status;
    r->body = body;
}

void reply_text(struct reply *r, int status, const char *content_type, char *text, size_t len)
{
    content_clear(r);
    r->status = status;
    r->content_type = content_type;
    r->text = text;
    r->text_len = len;
}

void reply_empty(struct reply *r, int status)
{
    content_clear(r);
    r->status = status;
}

void reply_error(struct reply *r, int status, const char *format, ...)
{
    char message[512], code[16];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    snprintf(code, sizeof(code), "%d", status);
    reply_json(r, status,
               json_pack("{s:s, s:s, s:s}", "message", message, "documentation_url",
                         "https://docs.github.com/rest", "status", code));
}

void reply_header(struct reply *r, const char *name, const char *format, ...)
{
    char value[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    json_object_set_new(r->headers, name, json_string(value));
}
