#include "ctl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "../../common/base/file.h"
#include "out.h"
#include "verbs.h"

#define SAID_MAX    65536 /* of one line that is said */
#define CHECK_MS    5000
#define TERMINAL_MS 200
#define LINES_MS    5000
#define STEP_MS     200

extern char **environ;

static volatile sig_atomic_t stopped;
static bool shown; /* progress is on the terminal, which has one line for it */

int ctl_open(struct ctl *ctl, const struct args *args)
{
    struct buf CLEANUP(buf_clear) faults = BUF_INIT(64u << 10);
    struct why why;
    if (context_apply(args, ctl->from, &why))
        return (ctl_fail(ctl, ERR_REFUSE, &why), CTL_USAGE);
    if (config_load(&ctl->config, DAEMON_CTL, environ, &faults)) {
        ctl_say(ctl, "%s: %.*s", ctl->from, STR_ARG(str_trim(buf_str(&faults))));
        return CTL_USAGE;
    }
    ctl->kafka = config_kafka(ctl->config, "crcrctl");
    if (topics_init(&ctl->topics, config_text(ctl->config, "CRCR_TOPIC_PREFIX"), &why))
        return (ctl_fail(ctl, ERR_REFUSE, &why), CTL_USAGE);
    return CTL_OK;
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
    ctl_say(ctl, "KAFKA_BROKERS is not set: where Kafka is, host:port,host:port; or --brokers, or "
                 "--context (`crcrctl context`)");
    return CTL_USAGE;
}

enum err ctl_redis(const struct ctl *ctl, struct redis **ret, struct why *why)
{
    const struct redis_options options = config_redis(ctl->config, ctl->topics.key_prefix);
    return options.endpoint && *options.endpoint
               ? redis_new(ret, &options, why)
               : why_set(why, ERR_STOP, "REDIS_ENDPOINT is not set");
}

enum err ctl_writer(const struct ctl *ctl, enum topic topic, struct topic_writer **ret,
                    struct why *why)
{
    const struct topic_writer_options options = { .kafka = ctl->kafka };
    const char *name = ctl->topics.name[topic];
    enum err err = topic_writer_new(ret, &options, why);
    return !err ? topic_writer_check(*ret, &name, 1, CHECK_MS, why) : err;
}

/* ---- what is printed ------------------------------------------------------------------------ */

void ctl_say(const struct ctl *ctl, const char *format, ...)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(SAID_MAX); /* may quote what somebody answered */
    va_list args;
    va_start(args, format);
    clean_vprintf(&text, format, args);
    va_end(args);
    progress_end();
    fprintf(stderr, "crcrctl %s: %.*s\n", ctl->verb, STR_ARG(buf_str(&text)));
}

int ctl_fail(const struct ctl *ctl, enum err err, const struct why *why)
{
    ctl_say(ctl, "%s", why->text);
    return err == ERR_RETRY || err == ERR_UNKNOWN ? CTL_UNREACHABLE : CTL_PROBLEM;
}

int ctl_bad(const struct ctl *ctl, const char *what, const char *value, const char *accepted)
{
    if (*value)
        ctl_say(ctl, "%s '%s': accepted is %s", what, value, accepted);
    else
        ctl_say(ctl, "%s: nothing is given; accepted is %s", what, accepted);
    return CTL_USAGE;
}

void ctl_put(const struct buf *text)
{
    fwrite(buf_str(text).ptr, 1, text->len, stdout);
}

void ctl_put_line(struct str line, bool whole)
{
    struct buf CLEANUP(buf_clear) fitted = BUF_INIT(2 * line.len + 100);
    put_fitted(&fitted, line, whole ? 0 : out_width());
    puts(fitted.ptr);
}

void ctl_put_text(const struct buf *text)
{
    struct buf CLEANUP(buf_clear) lines = BUF_INIT(2 * text->max);
    struct str rest = buf_str(text), line;
    size_t width = out_width(), indent;
    while (str_split(&rest, '\n', &line)) {
        for (indent = 0; indent < line.len && line.ptr[indent] == ' ';)
            indent++;
        buf_put(&lines, (struct str){ line.ptr, indent });
        put_wrapped(&lines, str_from(line, indent), indent, indent + 4,
                    width > indent + 20 ? width : SIZE_MAX);
    }
    ctl_put(&lines);
}

bool ctl_color(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    return !(no && *no) && (isatty(fileno(out)) || (force && *force && strcmp(force, "0") != 0));
}

void progress_show(const struct ctl *ctl, const char *format, ...)
{
    static int64_t due_ms; /* 0: nothing was to be shown yet */
    bool terminal = isatty(STDERR_FILENO), first = !due_ms;
    int64_t now = clock_mono_ms();
    va_list args;
    if (now < due_ms)
        return;
    due_ms = now + (terminal ? TERMINAL_MS : LINES_MS);
    if (first)
        return;
    shown = true;
    if (terminal)
        fputs("\r", stderr);
    else
        fprintf(stderr, "crcrctl %s: ", ctl->verb);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(terminal ? "\033[K" : "\n", stderr);
    fflush(stderr);
}

void progress_end(void)
{
    if (shown && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    shown = false;
}

/* ---- what is read --------------------------------------------------------------------------- */

enum err ctl_read_file(struct buf *to, const char *name, struct why *why)
{
    int fd = strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
    if (file_read(to, fd, why))
        return why_prefix(why, ERR_REFUSE, "%s", name);
    return OK;
}

/* ---- signals and waiting -------------------------------------------------------------------- */

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

/* In slices: a signal between the check and the poll would else be seen only at its end. */
bool ctl_wait(int64_t ms)
{
    int64_t end = clock_mono_ms() + ms, left;
    while (!ctl_stopped() && (left = end - clock_mono_ms()) > 0)
        poll(NULL, 0, (int)(left < STEP_MS ? left : STEP_MS));
    return !ctl_stopped();
}

bool pace_wait(struct pace *p)
{
    int64_t now = clock_mono_us(), step_us = p->per_second ? 1000000 / p->per_second : 0;
    if (!step_us)
        return !ctl_stopped();
    if (p->due_us > now && !ctl_wait((p->due_us - now + 999) / 1000))
        return false;
    now = clock_mono_us();
    p->due_us = (p->due_us > now - step_us ? p->due_us : now) + step_us;
    return !ctl_stopped();
}
