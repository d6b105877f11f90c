/* crcr-sim: stand-ins for what the relay talks to. Each is a subcommand in the table below. */
#include <stdio.h>
#include <string.h>

#include "../../common/daemon/daemon.h"
#include "broker.h"
#include "github.h"

static const struct command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "broker", sim_broker_main, "a Kafka broker in memory" },
    { "github", sim_github_main, "GitHub, Actions' OIDC issuer, the HUD's API and downstreams" },
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static int usage(FILE *to)
{
    fputs("usage: crcr-sim COMMAND …; each takes --help\n\n", to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (!strcmp(argv[1], "--version"))
        return printf("crcr-sim %s\n", daemon_version()) < 0;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].main(argc - 1, argv + 1);
    return usage(strcmp(argv[1], "--help") && strcmp(argv[1], "-h") ? stderr : stdout);
}
