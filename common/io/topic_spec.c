#include "topic_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/mem.h"

#define FILE_MAX_BYTES (64u << 10)

/* What is being read, for error texts. */
struct place {
    const char *file;
    int line;
    const char *line_start;
};

static enum err fault(const struct place *place, struct str where, struct why *why,
                      const char *reason)
{
    return why_set(why, ERR_REFUSE, "%s:%d:%d: %s: \"%.*s\"", place->file, place->line,
                   (int)(where.ptr - place->line_start) + 1, reason, STR_ARG(where));
}

/* Takes the next word off *rest; false at the end of the line. */
static bool next_word(struct str *rest, struct str *word)
{
    static const char blanks[] = " \t\r";
    size_t i = 0, end;

    while (i < rest->len && strchr(blanks, rest->ptr[i]))
        i++;
    for (end = i; end < rest->len && !strchr(blanks, rest->ptr[end]);)
        end++;
    *word = (struct str){ rest->ptr + i, end - i };
    *rest = str_from(*rest, end);
    return word->len > 0;
}

/* Units by what the config counts. */
static const struct unit {
    const char *config_ends;
    const char *suffix;
    int64_t factor;
} units[] = {
    { ".ms", "s", 1000 },         { ".ms", "m", 60000 },        { ".ms", "h", 3600000 },
    { ".ms", "d", 86400000 },     { ".bytes", "KiB", 1 << 10 }, { ".bytes", "MiB", 1 << 20 },
    { ".bytes", "GiB", 1 << 30 },
};

/* "7d" → 604800000 for *.ms, "26MiB" → 27262976 for *.bytes; anything else stays as it is. */
static bool value_set(struct topic_config *config, struct str value)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        const struct unit *u = &units[i];
        uint64_t number;
        if (!str_ends(str_of(config->name), u->config_ends) || !str_ends(value, u->suffix))
            continue;
        struct str digits = { value.ptr, value.len - strlen(u->suffix) };
        if (!str_to_u64(digits, &number) || number > (uint64_t)(INT64_MAX / u->factor))
            return false;
        snprintf(config->value, sizeof(config->value), "%" PRId64, (int64_t)number * u->factor);
        return true;
    }
    return value.len > 0 && str_copy(config->value, sizeof(config->value), value);
}

static bool is_number_config(const char *name)
{
    struct str s = str_of(name);

    return str_ends(s, ".ms") || str_ends(s, ".bytes") || str_ends(s, ".replicas");
}

/* A later setting of the same name wins: that is how a topic overrides the default. */
static struct topic_config *config_place(struct topic_spec *spec, struct str name)
{
    for (size_t i = 0; i < spec->n_configs; i++)
        if (str_is(name, spec->configs[i].name))
            return &spec->configs[i];
    return spec->n_configs < TOPIC_SPEC_MAX_CONFIGS ? &spec->configs[spec->n_configs++] : NULL;
}

static enum err parse_config(const struct place *place, struct topic_spec *spec, struct str word,
                             struct why *why)
{
    ptrdiff_t equals = str_find(word, '=');
    int64_t number;

    if (equals <= 0)
        return fault(place, word, why, "not <config>=<value>");
    struct str name = { word.ptr, (size_t)equals };
    struct topic_config *config = config_place(spec, name);
    if (!config)
        return fault(place, word, why, "more configs than a topic can have");
    if (!str_copy(config->name, sizeof(config->name), name))
        return fault(place, name, why, "name of a config is too long");
    struct str value = str_from(word, (size_t)equals + 1);
    if (!value_set(config, value) ||
        (is_number_config(config->name) && !str_to_i64(str_of(config->value), &number)))
        return fault(place, value, why, "value is empty, too long, or no number with a known unit");
    return OK;
}

static bool name_valid(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", s.ptr[i]))
            return false;
    return true;
}

static enum err parse_head(const struct place *place, const struct topic_specs *specs,
                           struct topic_spec *spec, struct str name, struct str *rest,
                           struct why *why)
{
    struct str count;
    uint64_t partitions;

    if (!name_valid(name) || !str_copy(spec->name, sizeof(spec->name), name))
        return fault(place, name, why, "a topic name has at most 95 of A-Z a-z 0-9 . _ -");
    for (size_t i = 0; i < specs->n; i++)
        if (str_is(name, specs->at[i].name))
            return fault(place, name, why, "topic is listed twice");
    if (!next_word(rest, &count) || !str_to_u64(count, &partitions) || partitions < 1 ||
        partitions > TOPIC_SPEC_MAX_PARTITIONS)
        return fault(place, count, why, "partitions is no number from 1 to 10000");
    spec->partitions = (int)partitions;
    return OK;
}

static enum err parse_line(const struct place *place, struct topic_specs *specs,
                           struct topic_spec *defaults, struct str line, struct why *why)
{
    ptrdiff_t comment = str_find(line, '#');
    struct str word;
    enum err err = OK;

    if (comment >= 0)
        line.len = (size_t)comment;
    if (!next_word(&line, &word))
        return OK;
    if (specs->n == TOPIC_SPEC_MAX_TOPICS)
        return fault(place, word, why, "more than 100 topics");
    struct topic_spec *spec = str_is(word, "default") ? defaults : &specs->at[specs->n];
    if (spec != defaults) {
        *spec = *defaults;
        err = parse_head(place, specs, spec, word, &line, why);
    }
    while (!err && next_word(&line, &word))
        err = parse_config(place, spec, word, why);
    if (!err && spec != defaults)
        specs->n++;
    return err;
}

enum err topic_specs_parse(struct topic_specs *ret, const char *file, struct str text,
                           struct why *why)
{
    struct topic_specs specs = { mem_alloc(TOPIC_SPEC_MAX_TOPICS, sizeof(*specs.at)), 0 };
    struct topic_spec defaults = { .n_configs = 0 };
    struct place place = { file, 0, text.ptr };
    enum err err = OK;

    while (!err && text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        place.line++;
        place.line_start = text.ptr;
        err = parse_line(&place, &specs, &defaults, (struct str){ text.ptr, len }, why);
        text = str_from(text, end ? len + 1 : len);
    }
    if (!err && specs.n == 0)
        err = why_set(why, ERR_REFUSE, "%s:1:1: no topics", file);
    if (err) {
        free(specs.at);
        return err;
    }
    *ret = specs;
    return OK;
}

enum err topic_specs_read(struct topic_specs *ret, const char *file, struct why *why)
{
    struct buf text;
    char block[4096];
    size_t n;
    FILE *in = fopen(file, "r");

    if (!in)
        return why_set(why, ERR_REFUSE, "%s: %s", file, strerror(errno));
    buf_init(&text, FILE_MAX_BYTES);
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        buf_put(&text, (struct str){ block, n });
    bool failed = ferror(in);
    fclose(in);
    enum err err = failed            ? why_set(why, ERR_REFUSE, "%s: cannot be read", file)
                   : buf_full(&text) ? why_set(why, ERR_REFUSE, "%s: larger than 64 KiB", file)
                                     : topic_specs_parse(ret, file, buf_str(&text), why);
    buf_clear(&text);
    return err;
}

void topic_specs_clear(struct topic_specs *specs)
{
    free(specs->at);
    *specs = (struct topic_specs){ NULL, 0 };
}

const char *topic_spec_config(const struct topic_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_configs; i++)
        if (!strcmp(spec->configs[i].name, name))
            return spec->configs[i].value;
    return NULL;
}
