#include "topic_spec.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/file.h"
#include "../base/mem.h"

#define FILE_MAX_BYTES (64u << 10)

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
static const struct config_unit {
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
        const struct config_unit *u = &units[i];
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

/* NULL, or what is wrong with *word, which may become a part of it. */
static const char *parse_config(struct topic_spec *spec, struct str *word)
{
    ptrdiff_t equals = str_find(*word, '=');
    int64_t number;
    size_t i = 0;

    if (equals <= 0)
        return "not <config>=<value>";
    struct str name = { word->ptr, (size_t)equals }, value = str_from(*word, (size_t)equals + 1);
    while (i < spec->n_configs && !str_is(name, spec->configs[i].name))
        i++; /* a later setting of the same name wins: so a topic overrides the default */
    if (i == TOPIC_SPEC_MAX_CONFIGS)
        return "more configs than a topic can have";
    struct topic_config *config = &spec->configs[i];
    if (i == spec->n_configs)
        spec->n_configs++;
    *word = name;
    if (!str_copy(config->name, sizeof(config->name), name))
        return "name of a config is too long";
    *word = value;
    bool is_number =
        str_ends(name, ".ms") || str_ends(name, ".bytes") || str_ends(name, ".replicas");
    if (!value_set(config, value) || (is_number && !str_to_i64(str_of(config->value), &number)))
        return "value is empty, too long, or no number with a known unit";
    return NULL;
}

/* The same of a line. */
static const char *parse_line(struct topic_specs *specs, struct topic_spec *defaults,
                              struct str line, struct str *word)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    ptrdiff_t comment = str_find(line, '#');
    struct topic_spec *spec = defaults;
    const char *reason = NULL;
    uint64_t partitions;

    if (comment >= 0)
        line.len = (size_t)comment;
    if (!next_word(&line, word))
        return NULL;
    if (!str_is(*word, "default")) {
        if (specs->n == TOPIC_SPEC_MAX_TOPICS)
            return "more than 100 topics";
        spec = &specs->at[specs->n];
        *spec = *defaults;
        if (!str_copy(spec->name, sizeof(spec->name), *word) ||
            strspn(spec->name, allowed) != word->len)
            return "a topic name has at most 95 of A-Z a-z 0-9 . _ -";
        for (size_t i = 0; i < specs->n; i++)
            if (str_is(*word, specs->at[i].name))
                return "topic is listed twice";
        if (!next_word(&line, word) || !str_to_u64(*word, &partitions) || partitions < 1 ||
            partitions > TOPIC_SPEC_MAX_PARTITIONS)
            return "partitions is no number from 1 to 10000";
        spec->partitions = (int)partitions;
        specs->n++;
    }
    while (!reason && next_word(&line, word))
        reason = parse_config(spec, word);
    return reason;
}

enum err topic_specs_parse(struct topic_specs *ret, const char *file, struct str text,
                           struct why *why)
{
    struct topic_specs specs = { mem_alloc(TOPIC_SPEC_MAX_TOPICS, sizeof(*specs.at)), 0 };
    struct topic_spec defaults = { .n_configs = 0 };
    struct str line = text, word = text;
    const char *reason = NULL;
    int number = 0;

    while (!reason && str_split(&text, '\n', &line)) {
        number++;
        reason = parse_line(&specs, &defaults, line, &word);
    }
    if (!reason && specs.n > 0) {
        *ret = specs;
        return OK;
    }
    free(specs.at);
    if (!reason)
        return why_set(why, ERR_REFUSE, "%s:1:1: no topics", file);
    return why_set(why, ERR_REFUSE, "%s:%d:%d: %s: \"%.*s\"", file, number,
                   (int)(word.ptr - line.ptr) + 1, reason, STR_ARG(word));
}

enum err topic_specs_read(struct topic_specs *ret, const char *file, struct why *why)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(FILE_MAX_BYTES);
    if (file_read(&text, open(file, O_RDONLY | O_CLOEXEC), why))
        return why_prefix(why, ERR_REFUSE, "%s", file);
    return topic_specs_parse(ret, file, buf_str(&text), why);
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
