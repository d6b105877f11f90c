#include "script.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <strings.h>
#include <utlist.h>

#include "../../common/base/mem.h"

#define HANG_MS 60000

struct rule {
    struct rule *prev, *next;
    json_t *source; /* owns what action borrows */
    char *method, *path, *repo;
    int64_t skip;  /* that many are let pass first */
    int64_t count; /* uses; 0: no end */
    int64_t seen, hits;
    struct rule_action action;
};

struct script {
    struct rule *rules; /* in order */
};

struct script *script_new(void)
{
    return mem_alloc(1, sizeof(struct script));
}

static void rule_free(struct rule *rule)
{
    json_decref(rule->source);
    free(rule->method);
    free(rule->path);
    free(rule->repo);
    free(rule);
}

static void rules_free(struct rule *rules)
{
    struct rule *rule, *next;

    DL_FOREACH_SAFE(rules, rule, next)
    {
        rule_free(rule);
    }
}

void script_clear(struct script *s)
{
    rules_free(s->rules);
    s->rules = NULL;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    script_clear(s);
    free(s);
}

/* The fields of a rule, what each must be, and how to say so. */
static const struct field {
    const char *name;
    json_type type;
    const char *expected;
} fields[] = {
    { "method", JSON_STRING, "a string" },      { "path", JSON_STRING, "a glob" },
    { "repo", JSON_STRING, "a glob" },          { "skip", JSON_INTEGER, "a whole number" },
    { "count", JSON_INTEGER, "a number" },      { "delay_ms", JSON_INTEGER, "a number of ms" },
    { "status", JSON_INTEGER, "100 to 599" },   { "headers", JSON_OBJECT, "an object of strings" },
    { "retry_after", JSON_INTEGER, "seconds" }, { "hang_ms", JSON_INTEGER, "a number of ms" },
    { "hang", JSON_TRUE, "true or false" },     { "reset", JSON_TRUE, "true or false" },
    { "effect", JSON_TRUE, "true or false" },   { "body", JSON_NULL, "any document" },
    { "name", JSON_STRING, "a string" },
};

static bool field_fits(const struct field *field, const json_t *value)
{
    if (field->type == JSON_NULL)
        return true;
    if (field->type == JSON_TRUE)
        return json_is_boolean(value);
    if (field->type == JSON_INTEGER)
        return json_is_integer(value) && json_integer_value(value) >= 0;
    return json_typeof(value) == field->type;
}

static enum err field_check(const char *name, const json_t *value, struct why *why)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (str_is(str_of(name), fields[i].name)) {
            if (field_fits(&fields[i], value))
                return OK;
            return why_set(why, ERR_REFUSE, "%s must be %s", name, fields[i].expected);
        }
    }
    return why_set(why, ERR_REFUSE, "%s is no field of a rule", name);
}

static enum err rule_check(const json_t *source, struct why *why)
{
    const char *name;
    json_t *value;
    json_int_t status;
    enum err err;

    if (!json_is_object(source))
        return why_set(why, ERR_REFUSE, "a rule must be an object");
    json_object_foreach((json_t *)source, name, value)
    {
        err = field_check(name, value, why);
        if (err)
            return err;
    }
    json_object_foreach(json_object_get(source, "headers"), name, value)
    {
        if (!json_is_string(value))
            return why_set(why, ERR_REFUSE, "header %s must be a string", name);
    }
    status = json_integer_value(json_object_get(source, "status"));
    if (status && (status < 100 || status > 599))
        return why_set(why, ERR_REFUSE, "status must be 100 to 599");
    return OK;
}

static char *text_dup(const json_t *source, const char *name, const char *fallback)
{
    const char *text = json_string_value(json_object_get(source, name));

    return mem_dup(text ? text : fallback);
}

static json_t *headers_of(const json_t *source)
{
    const json_t *seconds = json_object_get(source, "retry_after");
    json_t *headers = json_deep_copy(json_object_get(source, "headers"));

    if (!seconds)
        return headers;
    if (!headers)
        headers = json_object();
    json_object_set_new(headers, "Retry-After",
                        json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(seconds)));
    return headers;
}

static struct rule *rule_new(const json_t *source)
{
    struct rule *rule = mem_alloc(1, sizeof(*rule));
    const json_t *hang_ms = json_object_get(source, "hang_ms");
    json_t *headers = headers_of(source);

    rule->source = json_deep_copy(source);
    if (headers)
        json_object_set_new(rule->source, "headers", headers);
    rule->method = text_dup(source, "method", "*");
    rule->path = text_dup(source, "path", "*");
    rule->repo = text_dup(source, "repo", NULL);
    rule->skip = json_integer_value(json_object_get(source, "skip"));
    rule->count = json_integer_value(json_object_get(source, "count"));
    rule->action = (struct rule_action){
        .delay_ms = json_integer_value(json_object_get(source, "delay_ms")),
        .status = (int)json_integer_value(json_object_get(source, "status")),
        .headers = headers,
        .body = json_object_get(rule->source, "body"),
        .hang = json_is_true(json_object_get(source, "hang")),
        .hang_ms = hang_ms ? json_integer_value(hang_ms) : HANG_MS,
        .reset = json_is_true(json_object_get(source, "reset")),
        .effect = json_is_true(json_object_get(source, "effect")),
    };
    return rule;
}

enum err script_add(struct script *s, const json_t *rules, struct why *why)
{
    json_t *list = json_is_array(rules) ? json_deep_copy(rules) : json_pack("[O]", rules);
    struct rule *added = NULL;
    enum err err = OK;
    json_t *source;
    size_t i;

    json_array_foreach(list, i, source)
    {
        struct rule *rule;

        err = rule_check(source, why);
        if (err) {
            err = why_prefix(why, err, "rule %zu", i + 1);
            break;
        }
        rule = rule_new(source);
        DL_APPEND(added, rule);
    }
    if (err)
        rules_free(added);
    else
        DL_CONCAT(s->rules, added);
    json_decref(list);
    return err;
}

bool glob_matches(const char *glob, struct str text)
{
    char *copy = str_dup(text);
    bool matches = copy && fnmatch(glob, copy, 0) == 0;

    free(copy);
    return matches;
}

bool glob_matches_repo(const char *glob, struct str repo)
{
    char *copy = str_dup(repo);
    bool matches = copy && fnmatch(glob, copy, FNM_CASEFOLD) == 0;

    free(copy);
    return matches;
}

static bool rule_is_for(const struct rule *rule, struct str method, struct str path,
                        struct str repo)
{
    if (!glob_matches(rule->method, method) || !glob_matches(rule->path, path))
        return false;
    return !rule->repo || glob_matches_repo(rule->repo, repo);
}

const struct rule_action *script_take(struct script *s, struct str method, struct str path,
                                      struct str repo)
{
    struct rule *rule;

    DL_FOREACH(s->rules, rule)
    {
        if (!rule_is_for(rule, method, path, repo))
            continue;
        rule->seen++;
        if (rule->seen <= rule->skip || (rule->count && rule->hits >= rule->count))
            continue;
        rule->hits++;
        return &rule->action;
    }
    return NULL;
}

bool rule_replaces(const struct rule_action *action)
{
    return !action->effect && (action->status || action->hang || action->reset);
}

json_t *script_describe(const struct script *s)
{
    json_t *list = json_array();
    struct rule *rule;

    DL_FOREACH(s->rules, rule)
    {
        json_t *row = json_copy(rule->source);

        json_object_set_new(row, "seen", json_integer(rule->seen));
        json_object_set_new(row, "hits", json_integer(rule->hits));
        json_array_append_new(list, row);
    }
    return list;
}
