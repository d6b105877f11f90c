#include "args.h"

#include <string.h>

static bool take_flag(struct args *args, const char *text)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        { "--help", &args->help },
        { "-h", &args->help },
        { "--version", &args->version },
        { "--check-config", &args->check_config },
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (strcmp(text, flags[i].name) != 0)
            continue;
        *flags[i].flag = true;
        return true;
    }
    return false;
}

enum err args_parse(int argc, char **argv, struct args *ret, struct why *why)
{
    struct args args = { 0 };
    for (int i = 1; i < argc; i++) {
        struct str text = str_of(argv[i]);
        if (take_flag(&args, argv[i]))
            continue;
        if (str_starts(text, "--roles="))
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
