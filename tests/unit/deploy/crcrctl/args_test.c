/* The table of verbs: what it accepts, what it says otherwise, and that the README has the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "deploy/crcrctl/verbs.h"

#define WORDS_MAX 12
#define HOUR_MS   (3600 * 1000LL)

/* Parses "verb --option value …", split at blanks; what it says on stderr goes to said. */
static int parse(const char *line, struct args *ret, struct buf *said)
{
    static char words[400], *argv[WORDS_MAX + 1];
    struct ctl ctl = { .verb = "test" };
    struct why why;
    int argc = 0, n, code, saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    assert_true(str_copy(words, sizeof(words), str_of(line)));
    for (char *word = words, *end; word && argc < WORDS_MAX; word = end) {
        if ((end = strchr(word, ' ')))
            *end++ = '\0';
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    assert_int_equal(topics_init(&ctl.topics, "crcr.", &why), OK);
    const struct verb *verb = args_verb(argc, argv, &n);
    assert_non_null(verb);
    dup2(fileno(file), STDERR_FILENO);
    code = args_parse(&ctl, verb, argc - n + 1, argv + n - 1, ret);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;)
        buf_putc(said, (char)c);
    fclose(file);
    return code;
}

/* The line is no usage of the verb, and what is said has the text. */
static void assert_refused(const char *line, const char *text)
{
    struct buf CLEANUP(buf_clear) said;
    struct args a;

    buf_init(&said, 10000);
    if (parse(line, &a, &said) != CTL_USAGE || !strstr(buf_str(&said).ptr, text))
        fail_msg("%s: %s", line, said.len ? said.ptr : "accepted");
}

static void values_have_their_type_and_options_may_stand_anywhere(void **state)
{
    struct buf CLEANUP(buf_clear) said;
    struct args a;

    (void)state;
    buf_init(&said, 10000);
    assert_int_equal(parse("tail events --pr=42 -f --since 2h dlq --tier 3", &a, &said), CTL_OK);
    assert_int_equal(a.n_names, 2);
    assert_string_equal(a.names[0], "events");
    assert_string_equal(a.names[1], "dlq");
    assert_int_equal(a.pr, 42);
    assert_int_equal(a.tier, 3);
    assert_true(a.follow);
    assert_false(a.json);
    assert_in_range(clock_wall_ms() - a.since_ms, 2 * HOUR_MS, 2 * HOUR_MS + 10000);
    assert_int_equal(parse("dlq replay --rate 5/s --source crcr.events 1@2", &a, &said), CTL_OK);
    assert_int_equal(a.rate, 5);
    assert_string_equal(a.source, "crcr.events");
    assert_int_equal(parse("levels --max-e2e 90m", &a, &said), CTL_OK);
    assert_int_equal(a.rules.max_e2e_ms, 90 * 60000);
    assert_true(a.rules.min_pass_pct == 90);
    assert_int_equal(said.len, 0);
}

/* Each value wrong in its own way, and what the message must name as accepted. */
static void a_wrong_value_says_what_is_accepted(void **state)
{
    static const char *const rows[][2] = {
        { "tail --tier 5", "from 1 to 4" },
        { "tail --tier 0", "from 1 to 4" },
        { "tail --since soon", "10m, 2h, 3d" },
        { "tail --since 1969-12-31T23:59:59Z", "after 1970" },
        { "tail --since 0001-01-01T00:00:00Z", "after 1970" },
        { "tail --since 1970-01-01T00:00:00+00:01", "after 1970" },
        { "tail --since 1000000d", "after 1970" },
        { "tail --pr -1", "a number from 1" },
        { "tail --delivery a/b", "letters, digits or hyphens" },
        { "tail --repo nobody", "OWNER/REPO" },
        { "dlq list --class bad", "poison|refused|exhausted" },
        { "dlq list --source nowhere", "dispatch.l1" },
        { "dlq replay --rate 0", "such as 5 or 5/s" },
        { "dlq replay --rate 10001", "at most 10000" },
        { "redeliver --since 31d", "at most 30d" },
        { "redeliver --every 0s", "such as 45s" },
        { "levels --min-pass-rate 101", "from 0 to 100" },
        { "levels --min-pass-rate nan", "from 0 to 100" },
        { "replay --topic dlq", "events|callbacks" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_refused(rows[i][0], rows[i][1]);
}

static void an_unknown_option_says_which_there_are(void **state)
{
    static const char *const lines[] = { "tail --nonsense", "tail -x", "tail --pr",
                                         "tail --json=1" };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        assert_refused(lines[i], "--follow, --json, --since TIME, ");
}

static void too_few_and_too_many_arguments_are_refused_with_the_usage(void **state)
{
    static const char *const lines[] = { "dlq show", "dlq show 1@2 1@3", "redeliver extra" };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        assert_refused(lines[i], "usage: crcrctl ");
}

/* A default that its own type refuses would be 0 without a word. */
static void every_default_is_a_value_that_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_verbs; i++)
        for (const struct option_row *row = verbs[i].options; row->name; row++) {
            if (!row->initial)
                continue;
            struct buf CLEANUP(buf_clear) line;
            struct buf CLEANUP(buf_clear) said;
            struct args a;
            buf_init(&line, 400);
            buf_init(&said, 10000);
            buf_printf(&line, "%s --%s %s", verbs[i].name, row->name, row->initial);
            for (size_t k = 0; k < verbs[i].min; k++)
                buf_puts(&line, verb_words(&verbs[i]) == OPTION_REPO ? " org/x" : " x");
            if (parse(line.ptr, &a, &said) != CTL_OK)
                fail_msg("%s: %s", line.ptr, said.ptr);
        }
}

/* What the shells would offer for the last word of the line, in one text. */
static void completed(struct buf *to, const char *line)
{
    static char words[400], *argv[WORDS_MAX + 1];
    int argc = 0;

    assert_true(str_copy(words, sizeof(words), str_of(line)));
    for (char *word = words, *end; word && argc < WORDS_MAX; word = end) {
        if ((end = strchr(word, ' ')))
            *end++ = '\0';
        argv[argc++] = word;
    }
    complete(to, argc, argv);
}

static void assert_completed(const char *line, const char *wanted)
{
    struct buf CLEANUP(buf_clear) to = BUF_INIT(10000);

    completed(&to, line);
    if (!str_is(buf_str(&to), wanted))
        fail_msg("%s: %s", line, buf_str(&to).ptr);
}

static void completion_goes_by_what_stands_before(void **state)
{
    (void)state;
    assert_completed("dl", "dlq\n");
    assert_completed("dlq dr", "drop\n");
    assert_completed("help dlq s", "show\n");
    assert_completed("nonsense ta", "");
    assert_completed("nonsense more ta", "");
    assert_completed("tail --t", "--tier\n");
    assert_completed("tail ev", "events\n");
    assert_completed("tail --json callbacks dl", "dlq\n");
    assert_completed("tail --pr ev", "");
    assert_completed("lag crcr-ro", "crcr-router\n");
    assert_completed("dlq list --class ref", "refused\n");
    assert_completed("dlq list --source reco", "reconcile\n");
    assert_completed("completion z", "zsh\n");
    assert_completed("allowlist check a", "");
}

static void assert_suggested(const char *word, const char *names, const char *wanted)
{
    struct buf CLEANUP(buf_clear) to = BUF_INIT(1000);

    suggest(&to, word, str_of(names));
    assert_string_equal(buf_str(&to).len ? to.ptr : "", wanted);
}

static void the_nearest_names_are_suggested_up_to_two_letters_off(void **state)
{
    static const char names[] = "tail\ntrace\nreplay\nrebuild-hud\nredeliver\nlag\n";

    (void)state;
    assert_suggested("tial", names, "; did you mean tail?");
    assert_suggested("tai", names, "; did you mean tail?");
    assert_suggested("trase", names, "; did you mean trace?");
    assert_suggested("re", names, "; did you mean replay, rebuild-hud or redeliver?");
    assert_suggested("rely", names, "; did you mean replay?");
    assert_suggested("redelivery", names, "; did you mean redeliver?");
    assert_suggested("nonsense", names, "");
    assert_suggested("xy", names, "");
    assert_suggested("", names, "");
    assert_suggested("tail", "", "");
}

static void what_is_meant_is_said_of_options_choices_topics_and_groups(void **state)
{
    static const char *const rows[][2] = {
        { "tail --folow", "did you mean --follow?" },
        { "tail --delivry x", "did you mean --delivery?" },
        { "tail event", "did you mean events?" },
        { "tail dispatch.l", "did you mean dispatch.l1, dispatch.l2, dispatch.l3 or dispatch.l4?" },
        { "lag crcr-fould", "did you mean crcr-fold?" },
        { "dlq list --class poisn", "did you mean poison?" },
        { "dlq list --source dispatchs", "did you mean dispatches?" },
        { "completion zhs", "did you mean zsh?" },
        { "dlq show 3-17", "PARTITION@OFFSET" },
        { "probe org", "repository 'org'" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_refused(rows[i][0], rows[i][1]);
}

static void before_the_configuration_a_topic_or_group_may_have_any_prefix(void **state)
{
    static const char *const lines[] = { "tail staging.events crcr.dlq dlq all",
                                         "lag staging-router crcr-router",
                                         "dlq list --source staging.dispatch.l1" };
    struct buf CLEANUP(buf_clear) said = BUF_INIT(10000);
    struct args a;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        assert_int_equal(parse(lines[i], &a, &said), CTL_OK);
}

static void no_message_has_empty_quotes(void **state)
{
    static const char *const lines[] = {
        "tail --delivery=",  "tail --repo=", "tail --since=",
        "dlq list --class=", "tail --tier=", "dlq replay --rate="
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        assert_refused(lines[i], ": nothing is given; accepted is ");
}

static void help_manual_and_completion_have_every_verb_and_option(void **state)
{
    struct buf CLEANUP(buf_clear) manual;
    struct buf CLEANUP(buf_clear) all;

    (void)state;
    buf_init(&manual, 1u << 20);
    buf_init(&all, 1u << 20);
    help_manual(&manual);
    help_all(&all);
    for (size_t i = 0; i < n_verbs; i++) {
        struct buf CLEANUP(buf_clear) help;
        buf_init(&help, 1u << 20);
        assert_true(help_verb(&help, verbs[i].name));
        assert_non_null(strstr(all.ptr, verbs[i].summary));
        struct buf CLEANUP(buf_clear) offered = BUF_INIT(10000);
        char line[100];
        snprintf(line, sizeof(line), "%s", verbs[i].name);
        completed(&offered, line);
        snprintf(line, sizeof(line), "%s --", verbs[i].name);
        completed(&offered, line);
        const char *last = strrchr(verbs[i].name, ' ');
        assert_non_null(strstr(offered.ptr, last ? last + 1 : verbs[i].name));
        const struct option_row *row;
        for (size_t k = 0; (row = verb_option(&verbs[i], k)); k++) {
            char option[40];
            snprintf(option, sizeof(option), "--%s", row->name);
            assert_non_null(strstr(help.ptr, option));
            assert_non_null(strcmp(verbs[i].name, "help") ? strstr(offered.ptr, option) : option);
            snprintf(option, sizeof(option), ".TP\n\\-\\-%s ", row->name);
            assert_non_null(strstr(manual.ptr, option));
        }
    }
}

/* ---- the README ----------------------------------------------------------------------------- */

static char *readme(void)
{
    struct buf text;
    struct why why;

    buf_init(&text, 1u << 20);
    assert_int_equal(ctl_read_file(&text, SOURCE_DIR "/deploy/crcrctl/README.md", &why), OK);
    return buf_take(&text, NULL);
}

static void the_readme_has_each_verb_as_the_table_says_it(void **state)
{
    char *text = readme();

    (void)state;
    for (size_t i = 0; i < n_verbs; i++) {
        char row[400];
        snprintf(row, sizeof(row), "| `%s%s%s` | %s |\n", verbs[i].name,
                 *verbs[i].arguments ? " " : "", verbs[i].arguments, verbs[i].summary);
        if (!strstr(text, row))
            fail_msg("deploy/crcrctl/README.md lacks the row: %s", row);
    }
    free(text);
}

static bool is_option(struct str name)
{
    const struct option_row *row;

    for (size_t i = 0; i < n_verbs; i++)
        for (size_t k = 0; (row = verb_option(&verbs[i], k)); k++)
            if (str_is(name, row->name))
                return true;
    return str_is(name, "help");
}

static void the_readme_names_no_option_that_is_not_there(void **state)
{
    char *text = readme();

    (void)state;
    for (const char *at = text; (at = strstr(at, "--")); at += 2) {
        size_t len = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        bool is_name = at == text || strchr(" `[(|", at[-1]);
        if (is_name && len && at[2] != '-' && !is_option((struct str){ at + 2, len }))
            fail_msg("deploy/crcrctl/README.md: no verb has --%.*s", (int)len, at + 2);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_type_and_options_may_stand_anywhere),
        cmocka_unit_test(a_wrong_value_says_what_is_accepted),
        cmocka_unit_test(an_unknown_option_says_which_there_are),
        cmocka_unit_test(too_few_and_too_many_arguments_are_refused_with_the_usage),
        cmocka_unit_test(every_default_is_a_value_that_is_accepted),
        cmocka_unit_test(completion_goes_by_what_stands_before),
        cmocka_unit_test(the_nearest_names_are_suggested_up_to_two_letters_off),
        cmocka_unit_test(what_is_meant_is_said_of_options_choices_topics_and_groups),
        cmocka_unit_test(before_the_configuration_a_topic_or_group_may_have_any_prefix),
        cmocka_unit_test(no_message_has_empty_quotes),
        cmocka_unit_test(help_manual_and_completion_have_every_verb_and_option),
        cmocka_unit_test(the_readme_has_each_verb_as_the_table_says_it),
        cmocka_unit_test(the_readme_names_no_option_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
