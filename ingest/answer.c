#include "answer.h"

#include <stdarg.h>
#include <stdio.h>

static void answer_set(struct answer *a, int status, const char *reason, int retry_after_s,
                       const char *format, va_list args)
{
    *a = (struct answer){ .status = status, .reason = reason, .retry_after_s = retry_after_s };
    vsnprintf(a->text, sizeof(a->text), format, args);
}

bool answer_refuse(struct answer *a, int status, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_set(a, status, reason, 0, format, args);
    va_end(args);
    return false;
}

bool answer_later(struct answer *a, int status, const char *reason, int retry_after_s,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_set(a, status, reason, retry_after_s, format, args);
    va_end(args);
    return false;
}

bool answer_ignore(struct answer *a, const char *reason, const char *body)
{
    return answer_refuse(a, 200, reason, "%s", body);
}
