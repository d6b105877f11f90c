/* What can stand somewhere on the command line: for "did you mean", and for the shells. */
#include <string.h>

#include "out.h"
#include "verbs.h"

#define NAMES_MAX 8192
#define WORD_MAX  64
#define APART_MAX 2 /* letters */
#define FEW       4 /* more suggestions help nobody */

/* ---- names ----------------------------------------------------------------------------------- */

void names_of_verbs(struct buf *to)
{
    struct str group = STR_NONE, first;
    for (size_t i = 0; i < n_verbs; i++) {
        struct str rest = str_of(verbs[i].name);
        if (str_split(&rest, ' ', &first) && rest.len && !str_eq(first, group)) {
            group = first;
            buf_printf(to, "%.*s\n", STR_ARG(group));
        }
        buf_printf(to, "%s\n", verbs[i].name);
    }
}

void names_of_options(struct buf *to, const struct verb *verb)
{
    const struct option_row *row;
    for (size_t i = 0; (row = verb_option(verb, i)); i++)
        buf_printf(to, "--%s\n", row->name);
    buf_puts(to, "--help\n");
}

void names_of_values(struct buf *to, enum option_type type, const char *choices)
{
    struct str rest = type == OPTION_CHOICE ? str_of(choices) : STR_NONE, choice;
    struct topics topics;
    while (str_split(&rest, '|', &choice))
        buf_printf(to, "%.*s\n", STR_ARG(choice));
    for (size_t i = 0; type == OPTION_TOPIC && i < TOPIC_COUNT; i++)
        buf_printf(to, "%s\n", topic_base_name((enum topic)i));
    if (type == OPTION_CONTEXT)
        contexts_names(to);
    if (type == OPTION_GROUP && !topics_init(&topics, CTL_PREFIX, NULL))
        for (size_t i = 0; i < GROUP_COUNT; i++)
            buf_printf(to, "%s\n", topics.group[i]);
}

/* ---- did you mean ---------------------------------------------------------------------------- */

/* Letters to add, drop or replace (Levenshtein). Of long words only that they differ. */
static size_t apart(struct str a, struct str b)
{
    size_t row[WORD_MAX + 1];
    if (a.len > WORD_MAX || b.len > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= b.len; k++)
        row[k] = k;
    for (size_t i = 0; i < a.len; i++) {
        size_t corner = row[0]++;
        for (size_t k = 0; k < b.len; k++) {
            size_t best = corner + (a.ptr[i] != b.ptr[k]);
            best = row[k] + 1 < best ? row[k] + 1 : best;
            corner = row[k + 1];
            row[k + 1] = corner + 1 < best ? corner + 1 : best;
        }
    }
    return row[b.len];
}

void suggest(struct buf *to, const char *word, struct str names)
{
    struct str rest = names, name, near[FEW];
    size_t n = 0, best = APART_MAX;
    while (*word && str_split(&rest, '\n', &name)) {
        size_t now = str_starts(name, word) ? 0 : apart(str_of(word), name);
        if (now > best || now >= strlen(word) || str_is(name, word))
            continue;
        n = now < best ? 0 : n;
        best = now;
        if (n < FEW)
            near[n++] = name;
    }
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s%.*s",
                   !i          ? "; did you mean "
                   : i + 1 < n ? ", "
                               : " or ",
                   STR_ARG(near[i]));
    buf_puts(to, n ? "?" : "");
}

/* ---- completion ------------------------------------------------------------------------------ */

/* The option whose value comes next; NULL: none. */
static const struct option_row *awaits(const struct verb *verb, const char *word)
{
    const struct option_row *row;
    for (size_t i = 0; (row = verb_option(verb, i)); i++)
        if (row->type != OPTION_FLAG && str_starts(str_of(word), "--") &&
            !strcmp(word + 2, row->name))
            return row;
    return NULL;
}

void complete(struct buf *to, int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) names = BUF_INIT(NAMES_MAX);
    const char *word = argc ? argv[argc - 1] : "";
    char start[2 * WORD_MAX] = ""; /* of a verb of two words: the first */
    int n = 0;
    const struct verb *verb = argc > 1 ? args_verb(argc - 1, argv, &n) : NULL;
    const struct option_row *row = verb && argc - n > 1 ? awaits(verb, argv[argc - 2]) : NULL;
    if (verb && !strcmp(verb->name, "help")) {
        complete(to, argc - n, argv + n);
        return;
    }
    if (!verb && argc == 2)
        FORMAT(start, "%s ", argv[0]);
    if (!verb && argc < 3)
        names_of_verbs(&names);
    else if (row)
        names_of_values(&names, row->type, row->value);
    else if (verb && *word == '-')
        names_of_options(&names, verb);
    else if (verb)
        names_of_values(&names, verb_words(verb), SHELLS);
    for (struct str rest = buf_str(&names), name; str_split(&rest, '\n', &name);) {
        struct str end = str_from(name, strlen(start));
        if (str_starts(name, start) && str_starts(end, word) && (verb || str_find(end, ' ') < 0))
            buf_printf(to, "%.*s\n", STR_ARG(end));
    }
}
