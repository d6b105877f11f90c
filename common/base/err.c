#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void vformat(char *to, size_t size, const char *format, va_list args) PRINTF_LIKE(3, 0);

static void vformat(char *to, size_t size, const char *format, va_list args)
{
    if (vsnprintf(to, size, format, args) < 0)
        to[0] = '\0';
}

enum err why_set(struct why *why, enum err err, const char *format, ...)
{
    if (!why)
        return err;
    struct why made; /* the arguments may lie in *why itself */
    va_list args;
    va_start(args, format);
    vformat(made.text, sizeof(made.text), format, args);
    va_end(args);
    *why = made;
    return err;
}

enum err why_prefix(struct why *why, enum err err, const char *format, ...)
{
    if (!why)
        return err;
    struct why made;
    va_list args;
    va_start(args, format);
    vformat(made.text, sizeof(made.text), format, args);
    va_end(args);
    const char *parts[] = { ": ", why->text };
    size_t len = strlen(made.text);
    for (size_t i = 0; i < 2; i++) {
        size_t room = sizeof(made.text) - 1 - len;
        size_t n = strnlen(parts[i], room);
        memcpy(made.text + len, parts[i], n);
        len += n;
    }
    made.text[len] = '\0';
    *why = made;
    return err;
}

const char *err_name(enum err err)
{
    static const char *const names[] = {
        [OK] = "ok",           [ERR_REFUSE] = "refuse",
        [ERR_RETRY] = "retry", [ERR_UNKNOWN] = "unknown",
        [ERR_STOP] = "stop",
    };
    return (size_t)err < sizeof(names) / sizeof(names[0]) ? names[err] : "invalid";
}
