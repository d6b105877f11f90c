#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "dlq.h"
#include "out.h"
#include "verbs.h"

#define RATE_MAX 10000

/* What each type is called in --help and, where words have it, how their row begins; what an error
 * says is accepted; and what it calls such a word. */
static const struct {
    const char *value, *accepted, *word;
} types[] = {
    [OPTION_FLAG] = { "", "", NULL },
    [OPTION_TEXT] = { "TEXT", "a text", "argument" },
    [OPTION_CHOICE] = { SHELLS, "", "shell" }, /* "": all names */
    [OPTION_REPO] = { "OWNER/REPO", "OWNER/REPO", "repository" },
    [OPTION_DELIVERY] = { "DELIVERY", "1 to 64 letters, digits or hyphens", "delivery" },
    [OPTION_TOPIC] = { "TOPIC", "", "topic" },
    [OPTION_GROUP] = { "GROUP", "", "group" },
    [OPTION_CONTEXT] = { "NAME", "a name of `crcrctl context`", NULL },
    [OPTION_POSITION] = { "PARTITION@OFFSET", "PARTITION@OFFSET as `dlq list` shows it",
                          "position" },
    [OPTION_TIME] = { "TIME", "10m, 2h, 3d (ago) or 2026-11-21T03:20:00Z, after 1970", NULL },
    [OPTION_DURATION] = { "DURATION", "a time such as 45s, 5m, 2h or 3d", NULL },
    [OPTION_NUMBER] = { "N", "a number", NULL },
    [OPTION_RATE] = { "N/s", "a number a second, such as 5 or 5/s, at most 10000", NULL },
    [OPTION_PERCENT] = { "PERCENT", "a percentage from 0 to 100, such as 90 or 0.5", NULL },
};

const char *option_value(const struct option_row *row)
{
    return row->value ? row->value : types[row->type].value;
}

enum option_type verb_words(const struct verb *verb)
{
    struct str row = str_of(verb->arguments + (*verb->arguments == '['));
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (types[i].word && str_starts(row, types[i].value))
            return (enum option_type)i;
    return OPTION_TEXT;
}

const struct option_row *verb_option(const struct verb *verb, size_t i)
{
    size_t n = 0;
    while (verb->options[n].name)
        n++;
    return i < n                                                        ? &verb->options[i]
           : verb->needs != NEEDS_NOTHING && common_options[i - n].name ? &common_options[i - n]
                                                                        : NULL;
}

enum topic args_topic(const struct ctl *ctl, const char *name)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        if (!strcmp(topic_base_name((enum topic)i), name) || !strcmp(ctl->topics.name[i], name))
            return (enum topic)i;
    return TOPIC_COUNT;
}

/* Before the configuration is known the prefix is whatever stands before the rest. */
static bool is_topic(const struct ctl *ctl, struct str name)
{
    for (size_t i = 0; i < TOPIC_COUNT && !ctl->config; i++)
        if (str_ends(name, topic_base_name((enum topic)i)))
            return true;
    return args_topic(ctl, name.ptr) != TOPIC_COUNT;
}

static bool is_group(const struct ctl *ctl, struct str name)
{
    for (size_t i = 0; i < GROUP_COUNT && !ctl->config; i++)
        if (str_ends(name, strrchr(ctl->topics.group[i], '-')))
            return true;
    return topics_find_group(&ctl->topics, name) != GROUP_COUNT;
}

/* "45s", "10m", "2h", "3d". */
static bool duration_parse(const char *text, int64_t *ret)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
    size_t len = strlen(text);
    uint64_t number;
    for (size_t i = 0; len > 1 && i < sizeof(units) / sizeof(*units); i++) {
        if (text[len - 1] != units[i].unit || !str_to_u64((struct str){ text, len - 1 }, &number) ||
            number > 1000000)
            continue;
        *ret = (int64_t)number * units[i].ms;
        return true;
    }
    return false;
}

static bool number_parse(struct str text, int64_t max, int64_t *ret)
{
    uint64_t number;
    if (!str_to_u64(text, &number) || number < 1 || number > (uint64_t)max)
        return false;
    *ret = (int64_t)number;
    return true;
}

static bool is_one_of(const char *choices, const char *text)
{
    struct str rest = str_of(choices), choice;
    while (str_split(&rest, '|', &choice))
        if (str_is(choice, text))
            return true;
    return false;
}

static bool text_fits(const struct ctl *ctl, enum option_type type, const char *choices,
                      struct str text)
{
    struct dlq_position at;
    return type == OPTION_CHOICE     ? is_one_of(choices, text.ptr)
           : type == OPTION_REPO     ? repo_valid(text)
           : type == OPTION_DELIVERY ? delivery_valid(text)
           : type == OPTION_TOPIC    ? is_topic(ctl, text)
           : type == OPTION_GROUP    ? is_group(ctl, text)
           : type == OPTION_POSITION ? dlq_position_parse(text, &at)
           : type == OPTION_CONTEXT  ? context_exists(text.ptr)
                                     : text.len > 0;
}

/* False: the text is not what the option takes. */
static bool value_take(const struct ctl *ctl, const struct option_row *row, const char *text,
                       struct args *args)
{
    void *to = (char *)args + row->at;
    struct str value = str_of(text);
    int64_t *number = to;
    double *percent = to;
    char *end;
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)to = true;
        return true;
    case OPTION_TIME:
        if (duration_parse(text, number))
            *number = clock_wall_ms() - *number;
        else if (clock_parse(value, number, NULL))
            return false;
        return *number > 0; /* 0: not given; below: librdkafka's "from the end" and the like */
    case OPTION_DURATION:
        return duration_parse(text, number) && *number > 0 && (!row->max || *number <= row->max);
    case OPTION_RATE:
        if (str_ends(value, "/s"))
            value.len -= 2;
        return number_parse(value, RATE_MAX, number);
    case OPTION_NUMBER:
        return number_parse(value, row->max, number);
    case OPTION_PERCENT:
        *percent = strtod(text, &end);
        return end != text && (!*end || !strcmp(end, "%")) && *percent >= 0 && *percent <= 100;
    default:
        *(const char **)to = text;
        return text_fits(ctl, row->type, row->value, value);
    }
}

/* what: the option or the kind of word. */
static int value_bad(const struct ctl *ctl, const char *what, const struct option_row *row,
                     const char *text)
{
    struct buf CLEANUP(buf_clear) accepted = BUF_INIT(4000), names = BUF_INIT(4000);
    names_of_values(&names, row->type, row->value);
    struct str rest = buf_str(&names), name;
    if (row->type == OPTION_NUMBER)
        buf_printf(&accepted, "a number from 1 to %lld", (long long)row->max);
    else
        buf_puts(&accepted, types[row->type].accepted);
    const char *comma = row->type == OPTION_CHOICE ? "|" : ", ";
    while (!*types[row->type].accepted && str_split(&rest, '\n', &name))
        buf_printf(&accepted, "%s%.*s", accepted.len ? comma : "", STR_ARG(name));
    if (row->type == OPTION_DURATION && row->max)
        buf_printf(&accepted, ", at most %lldd", (long long)row->max / 86400000);
    if (row->type == OPTION_TOPIC && !row->name)
        buf_puts(&accepted, " or all");
    suggest(&accepted, text, buf_str(&names));
    return ctl_bad(ctl, what, text, accepted.ptr);
}

const struct verb *args_verb(int argc, char **argv, int *words)
{
    char two[64];
    FORMAT(two, "%s %s", argv[0], argc > 1 ? argv[1] : "");
    for (size_t i = 0; i < n_verbs; i++) {
        *words = strchr(verbs[i].name, ' ') ? 2 : 1;
        if (!strcmp(verbs[i].name, *words == 2 ? two : argv[0]))
            return &verbs[i];
    }
    return NULL;
}

/* getopt_long takes "--token" for --token-file, whose value is shown when it is no file. */
static bool is_whole(const char *word, const char *name)
{
    size_t len = strlen(name);
    return !strncmp(word, "--", 2) && !strncmp(word + 2, name, len) && strchr("=", word[2 + len]);
}

/* A value after "=" may be a secret. */
static int option_bad(const struct ctl *ctl, const struct verb *verb, const char *word)
{
    struct buf CLEANUP(buf_clear) accepted = BUF_INIT(4000), names = BUF_INIT(4000);
    const struct option_row *row;
    char name[64];
    for (size_t i = 0; (row = verb_option(verb, i)); i++)
        buf_printf(&accepted, "--%s%s%s, ", row->name, *option_value(row) ? " " : "",
                   option_value(row));
    buf_puts(&accepted, "--help");
    FORMAT(name, "%.*s", (int)strcspn(word, "="), word);
    names_of_options(&names, verb);
    suggest(&accepted, name, buf_str(&names));
    return ctl_bad(ctl, "option", name, accepted.ptr);
}

static int words_check(const struct ctl *ctl, const struct verb *verb, const struct args *args)
{
    const struct option_row row = { .type = verb_words(verb), .value = SHELLS };
    for (size_t i = 0; i < args->n_names; i++) {
        const char *text = args->names[i];
        if (!text_fits(ctl, row.type, SHELLS, str_of(text)) &&
            (row.type != OPTION_TOPIC || strcmp(text, "all") != 0))
            return value_bad(ctl, types[row.type].word, &row, text);
    }
    return CTL_OK;
}

int args_parse(const struct ctl *ctl, const struct verb *verb, int argc, char **argv,
               struct args *ret)
{
    struct option options[sizeof(verb->options) / sizeof(*verb->options) + COMMON_OPTIONS] = {
        { 0 }
    };
    const struct option_row *row;
    char letters[2 * sizeof(options) / sizeof(*options) + 2] = ":"; /* the rest stays NUL */
    char name[64];
    int got, index = -1;
    *ret = (struct args){ .json = false };
    for (size_t i = 0; (row = verb_option(verb, i)); i++) {
        options[i] =
            (struct option){ row->name, row->type == OPTION_FLAG ? no_argument : required_argument,
                             NULL, row->letter ? row->letter : 256 };
        if (row->letter)
            snprintf(strchr(letters, '\0'), sizeof("n:"), "%c%s", row->letter,
                     row->type == OPTION_FLAG ? "" : ":");
        if (row->initial)
            (void)value_take(ctl, row, row->initial, ret);
    }
    optind = 0; /* begins anew */
    while ((got = getopt_long(argc, argv, letters, options, &index)) != -1) {
        const char *word = argv[optind > 1 ? optind - 1 : 1];
        if (index >= 0 && optarg == word)
            word = argv[optind - 2];
        for (size_t i = index < 0 ? 0 : (size_t)index; (row = verb_option(verb, i)); i++)
            if (index >= 0 || row->letter == got)
                break;
        /* No row: it is not the verb's, or its value is missing; then index is not set. */
        if (!row || (index >= 0 && !is_whole(word, row->name)))
            return option_bad(ctl, verb, word);
        index = -1;
        FORMAT(name, "--%s", row->name);
        if (!value_take(ctl, row, optarg, ret))
            return value_bad(ctl, name, row, optarg);
    }
    ret->names = argv + optind;
    ret->n_names = (size_t)(argc - optind);
    if (ret->n_names >= verb->min && ret->n_names <= verb->max)
        return words_check(ctl, verb, ret);
    fprintf(stderr, "usage: crcrctl %s [OPTION…] %s; `crcrctl %s --help` says more\n", verb->name,
            verb->arguments, verb->name);
    return CTL_USAGE;
}
