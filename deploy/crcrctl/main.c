/* crcrctl: looks into the relay, checks its parts, and brings back what was lost. Its verbs are the
 * table in verbs.c. */
#include <string.h>

#include "verbs.h"

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
    if (code == CTL_OK && verb->needs != NEEDS_NOTHING && (code = ctl_open(&ctl, &args)) == CTL_OK)
        code = args_parse(&ctl, verb, argc, argv, &args);
    if (code == CTL_OK && verb->needs == NEEDS_KAFKA && (code = ctl_needs_kafka(&ctl)) == CTL_OK)
        code = delivery_complete(&ctl, verb, &args);
    if (code == CTL_OK)
        code = verb->run(&ctl, &args);
    ctl_close(&ctl);
    return code;
}

int main(int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) names = BUF_INIT(64u << 10);
    int words = 0;
    if (argc > 1 && !strcmp(argv[1], "__complete")) { /* the shells' */
        complete(&names, argc - 2, argv + 2);
        ctl_put(&names);
        return CTL_OK;
    }
    if (argc > 1 && !strcmp(argv[1], "--version"))
        argv[1] += strlen("--");
    const struct verb *verb = argc > 1 ? args_verb(argc - 1, argv + 1, &words) : NULL;
    bool asked = asks_help(argc - 1, argv + 1);
    return verb && !asked ? verb_run(verb, argc - words, argv + words)
                          : help_print(asked, argc - 1, argv + 1);
}
