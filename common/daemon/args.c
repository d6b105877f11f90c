#include "args.h"

#include <string.h>

enum err args_parse(int argc, char **argv, struct daemon_args *ret, struct why *why)
{
    struct daemon_args args = { 0 };
    for (int i = 1; i < argc; i++) {
        struct str text = str_of(argv[i]);
        if (str_is(text, "--help") || str_is(text, "-h"))
            args.help = true;
        else if (str_is(text, "--version"))
            args.version = true;
        else if (str_is(text, "--check-config"))
            args.check_config = true;
        else if (str_starts(text, "--roles="))
            args.roles = str_from(text, strlen("--roles="));
        else if (str_is(text, "--roles") && i + 1 < argc)
            args.roles = str_of(argv[++i]);
        else if (str_is(text, "--roles"))
            return why_set(why, ERR_REFUSE, "--roles needs names, comma-separated");
        else
            return why_set(why, ERR_REFUSE, "%s: unknown argument", argv[i]);
    }
    *ret = args;
    return OK;
}
