/* crcrctl: looks into the relay, checks its parts, and brings back what was lost. Its verbs are the
 * table in verbs.c. */
#include <string.h>

#include "../../common/daemon/daemon.h"
#include "verbs.h"

#define HELP_MAX (256u << 10)

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static int verb_run(const struct verb *verb, int argc, char **argv)
{
    struct ctl ctl = { .verb = verb->name };
    struct args args;
    int code = CTL_OK;
    if (verb->needs != NEEDS_NOTHING)
        code = ctl_open(&ctl);
    if (code == CTL_OK && verb->needs == NEEDS_KAFKA)
        code = ctl_needs_kafka(&ctl);
    if (code == CTL_OK)
        code = args_parse(&ctl, verb, argc, argv, &args);
    if (code == CTL_OK)
        code = verb->run(&ctl, &args);
    ctl_close(&ctl);
    return code;
}

int main(int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) text;
    int words = 0;
    const struct verb *verb = argc > 1 ? args_verb(argc - 1, argv + 1, &words) : NULL;
    buf_init(&text, HELP_MAX);
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("crcrctl %s\n", daemon_version());
        return CTL_OK;
    }
    if (verb && !asks_help(argc - 1 - words, argv + 1 + words))
        return verb_run(verb, argc - words, argv + words);
    bool asked = argc > 1 && (asks_help(1, argv + 1) || asks_help(argc - 2, argv + 2));
    if (argc < 2 || !help_verb(&text, verb ? verb->name : argv[1])) {
        help_all(&text);
        asked = argc > 1 && asks_help(1, argv + 1);
        if (argc > 1 && !asked)
            fprintf(stderr, "crcrctl: no verb '%s'\n", argv[1]);
    }
    fwrite(text.ptr, 1, text.len, asked ? stdout : stderr);
    return asked ? CTL_OK : CTL_USAGE;
}
