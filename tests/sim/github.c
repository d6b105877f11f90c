#include "github.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../../common/base/log.h"
#include "options.h"
#include "sim.h"

static volatile sig_atomic_t stopping;

static void stop(int number)
{
    (void)number;
    stopping = 1;
}

/* Without SA_RESTART: the signal ends the wait in poll. */
static void signals_catch(void)
{
    struct sigaction action = { .sa_handler = stop };

    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

/* Written under another name and renamed, so that a reader never sees half of it. */
static enum err port_tell(const char *path, int port, struct why *why)
{
    char draft[1024];
    FILE *file;
    bool written;

    if (!path)
        return OK;
    snprintf(draft, sizeof(draft), "%s.new", path);
    file = fopen(draft, "we");
    if (!file)
        return why_set(why, ERR_STOP, "cannot write %s: %s", draft, strerror(errno));
    written = fprintf(file, "%d\n", port) > 0;
    if (fclose(file) || !written || rename(draft, path))
        return why_set(why, ERR_STOP, "cannot write %s: %s", path, strerror(errno));
    return OK;
}

static int serve(const struct options *options)
{
    struct sim *sim = NULL;
    struct why why;
    enum err err = sim_new(&sim, options, &why);

    if (!err)
        err = port_tell(options->port_file, http_server_port(sim->server), &why);
    if (err) {
        log_error("start_failed", LOG_STR("why", str_of(why.text)));
        sim_free(sim);
        return 1;
    }
    log_info("listening", LOG_INT("port", http_server_port(sim->server)));
    while (!stopping)
        sim_turn(sim);
    log_info("stopped", LOG_INT("port", http_server_port(sim->server)));
    sim_free(sim);
    return 0;
}

int sim_github_main(int argc, char **argv)
{
    struct options options;
    struct buf CLEANUP(buf_clear) help;
    struct why why;

    log_init("crcr-sim", LOG_INFO, LOG_TEXT);
    buf_init(&help, 8192);
    if (options_parse(&options, argc - 1, argv + 1, &why)) {
        fprintf(stderr, "crcr-sim github: %s\n", why.text);
        return 2;
    }
    if (options.help) {
        options_help(&help);
        fputs(help.ptr, stdout);
        return 0;
    }
    signals_catch();
    return serve(&options);
}
