#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>

static void verdict_set(struct verdict *v, int status, const char *reason, int retry_after_s,
                        const char *format, va_list args)
{
    *v = (struct verdict){ .status = status, .reason = reason, .retry_after_s = retry_after_s };
    vsnprintf(v->text, sizeof(v->text), format, args);
}

bool verdict_refuse(struct verdict *v, int status, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    verdict_set(v, status, reason, 0, format, args);
    va_end(args);
    return false;
}

bool verdict_later(struct verdict *v, int status, const char *reason, int retry_after_s,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    verdict_set(v, status, reason, retry_after_s, format, args);
    va_end(args);
    return false;
}

bool verdict_ignore(struct verdict *v, const char *reason, const char *body)
{
    return verdict_refuse(v, 200, reason, "%s", body);
}
