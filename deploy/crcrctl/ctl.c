#include "ctl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "clean.h"

extern char **environ;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

void ctl_catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool ctl_stopped(void)
{
    return stopped;
}

int ctl_open(struct ctl *ctl)
{
    struct buf faults;
    struct why why;

    buf_init(&faults, 64u << 10);
    enum err err = config_load(&ctl->config, DAEMON_CTL, environ, &faults);
    if (err != OK)
        fprintf(stderr, "crcrctl %s: %.*s\n", ctl->verb, STR_ARG(str_trim(buf_str(&faults))));
    buf_clear(&faults);
    if (err != OK)
        return CTL_USAGE;
    ctl->kafka = config_kafka(ctl->config, "crcrctl");
    err = topics_init(&ctl->topics, config_text(ctl->config, "CRCR_TOPIC_PREFIX"), &why);
    if (err == OK)
        return CTL_OK;
    ctl_fail(ctl, err, &why);
    return CTL_USAGE;
}

void ctl_close(struct ctl *ctl)
{
    config_free(ctl->config);
    ctl->config = NULL;
}

int ctl_needs_kafka(const struct ctl *ctl)
{
    if (ctl->kafka.brokers)
        return CTL_OK;
    fprintf(stderr, "crcrctl %s: KAFKA_BROKERS is not set: where Kafka is, host:port,host:port\n",
            ctl->verb);
    return CTL_USAGE;
}

struct redis_options ctl_redis(const struct ctl *ctl)
{
    return config_redis(ctl->config, ctl->topics.key_prefix);
}

int ctl_fail(const struct ctl *ctl, enum err err, const struct why *why)
{
    struct buf CLEANUP(buf_clear) text; /* may quote what somebody answered */

    buf_init(&text, sizeof(why->text));
    clean_line(&text, str_of(why->text));
    fprintf(stderr, "crcrctl %s: %.*s\n", ctl->verb, STR_ARG(buf_str(&text)));
    return err == ERR_RETRY || err == ERR_UNKNOWN ? CTL_UNREACHABLE : CTL_PROBLEM;
}

int ctl_usage(const struct ctl *ctl, bool help)
{
    fputs(ctl->usage, help ? stdout : stderr);
    return help ? CTL_OK : CTL_USAGE;
}

int ctl_bad(const struct ctl *ctl, const char *what, const char *value, const char *accepted)
{
    fprintf(stderr, "crcrctl %s: %s '%s': accepted is %s\n", ctl->verb, what, value, accepted);
    return CTL_USAGE;
}

bool ctl_color(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");

    return !(no && *no) && (isatty(fileno(out)) || (force && *force && strcmp(force, "0")));
}
