/* What of a callback was not taken as it came, in sentences for its sender: each once, and at most
 * CALLBACK_WARNINGS_MAX. PURE. */
#ifndef CRCR_MODEL_CALLBACK_WARNINGS_H
#define CRCR_MODEL_CALLBACK_WARNINGS_H

#include "../base/buf.h"

#define CALLBACK_WARNINGS_MAX 10

struct callback_warnings { /* starts as zeros; buf_clear(&list) frees it */
    struct buf list;       /* a JSON array without its closing bracket */
    size_t n;
};

/* Adds a sentence, cut at 255 bytes: "workflow.url is …: left out". Past the maximum only the first
 * is counted, as "more was left out". */
void callback_warn(struct callback_warnings *w, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
