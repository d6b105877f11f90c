/* crcrctl: looks into the relay, checks its parts, and brings back what was lost. Its verbs are the
 * table in verbs.c. */
#include <string.h>

#include "verbs.h"

#define HELP_MAX (256u << 10)

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

/* Arguments come before the configuration, and once more after it, which knows the prefix. */
static int verb_run(const struct verb *verb, int argc, char **argv)
{
    struct ctl ctl = { .verb = verb->name, .words = argv + 1, .n_words = argc - 1 };
    struct args args;
    int code = topics_init(&ctl.topics, CTL_PREFIX, NULL) ? CTL_PROBLEM : CTL_OK;
    if (code == CTL_OK)
        code = args_parse(&ctl, verb, argc, argv, &args);
    if (code == CTL_OK && verb->needs != NEEDS_NOTHING)
        code = ctl_open(&ctl, &args);
    if (code == CTL_OK && verb->needs != NEEDS_NOTHING)
        code = args_parse(&ctl, verb, argc, argv, &args);
    if (code == CTL_OK && verb->needs == NEEDS_KAFKA)
        code = ctl_needs_kafka(&ctl);
    if (code == CTL_OK && verb->needs == NEEDS_KAFKA)
        code = delivery_complete(&ctl, verb, &args);
    if (code == CTL_OK)
        code = verb->run(&ctl, &args);
    ctl_close(&ctl);
    return code;
}

/* Help for the first word, which is no verb, but may begin some: "dlq". */
static int group_help(int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(HELP_MAX);
    bool asked = asks_help(argc - 1, argv + 1);
    bool alone = argc == 1 || asked;
    if (!alone || !*argv[0] || !help_verb(&text, argv[0]))
        return help_no_verb(argc, argv);
    fwrite(text.ptr, 1, text.len, asked ? stdout : stderr);
    return asked ? CTL_OK : CTL_USAGE;
}

int main(int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(HELP_MAX);
    static char help[] = "help", version[] = "version";
    int words = 0;
    if (argc < 2 || !*argv[1]) {
        help_all(&text);
        fwrite(text.ptr, 1, text.len, stderr);
        return CTL_USAGE;
    }
    if (!strcmp(argv[1], "__complete")) { /* the shells' */
        complete(&text, argc - 2, argv + 2);
        ctl_put(&text);
        return CTL_OK;
    }
    argv[1] = asks_help(1, argv + 1) ? help : !strcmp(argv[1], "--version") ? version : argv[1];
    const struct verb *verb = args_verb(argc - 1, argv + 1, &words);
    if (!verb)
        return group_help(argc - 1, argv + 1);
    if (!asks_help(argc - 1 - words, argv + 1 + words))
        return verb_run(verb, argc - words, argv + words);
    (void)help_verb(&text, verb->name);
    ctl_put_text(&text);
    return CTL_OK;
}
