#include "callback_warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "../base/json_text.h"

#define SENTENCE_MAX 255
#define QUOTED_MAX   (6 * SENTENCE_MAX + 2) /* each byte as \u00xx */

void callback_warn(struct callback_warnings *w, const char *format, ...)
{
    char text[SENTENCE_MAX + 1];
    if (w->n > CALLBACK_WARNINGS_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct buf CLEANUP(buf_clear) quoted = BUF_INIT(QUOTED_MAX);
    json_text_put(&quoted, str_of(text));
    if (str_find_str(buf_str(&w->list), buf_str(&quoted)) >= 0)
        return;
    if (w->n++ == 0)
        buf_init(&w->list, (CALLBACK_WARNINGS_MAX + 1) * (QUOTED_MAX + 1));
    buf_putc(&w->list, w->n == 1 ? '[' : ',');
    if (w->n <= CALLBACK_WARNINGS_MAX)
        buf_put(&w->list, buf_str(&quoted));
    else
        buf_puts(&w->list, "\"more was left out\"");
}
