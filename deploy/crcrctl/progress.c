#include "progress.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "../../common/base/clock.h"
#include "ctl.h"

#define TERMINAL_MS 200
#define LINES_MS    5000
#define SLICE_MS    200

static bool shown; /* something stands on the terminal, which has one place for it */

void progress_init(struct progress *p, const char *verb)
{
    *p = (struct progress){ .verb = verb, .due_ms = clock_mono_ms() + TERMINAL_MS };
    if (!isatty(STDERR_FILENO))
        p->due_ms = clock_mono_ms() + LINES_MS;
}

void progress_show(struct progress *p, const char *format, ...)
{
    bool terminal = isatty(STDERR_FILENO);
    int64_t now = clock_mono_ms();
    va_list args;

    if (now < p->due_ms)
        return;
    p->due_ms = now + (terminal ? TERMINAL_MS : LINES_MS);
    shown = true;
    if (terminal)
        fputs("\r", stderr);
    else
        fprintf(stderr, "crcrctl %s: ", p->verb);
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

/* In slices: a signal between the check and the poll would else be seen only at its end. */
bool ctl_wait(int64_t ms)
{
    int64_t end = clock_mono_ms() + ms, left;

    while (!ctl_stopped() && (left = end - clock_mono_ms()) > 0)
        poll(NULL, 0, (int)(left < SLICE_MS ? left : SLICE_MS));
    return !ctl_stopped();
}

void pace_init(struct pace *p, int per_second)
{
    *p = (struct pace){ .step_us = per_second > 0 ? 1000000 / per_second : 0 };
}

bool pace_wait(struct pace *p)
{
    int64_t now = clock_mono_us();

    if (!p->step_us)
        return !ctl_stopped();
    if (p->due_us > now && !ctl_wait((p->due_us - now + 999) / 1000))
        return false;
    now = clock_mono_us();
    p->due_us = (p->due_us > now - p->step_us ? p->due_us : now) + p->step_us;
    return !ctl_stopped();
}
