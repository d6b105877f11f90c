/* What to do with a request: go on, or answer now. PURE modules fill one; responder.c sends it. */
#ifndef CRCR_INGEST_VERDICT_H
#define CRCR_INGEST_VERDICT_H

#include <stdbool.h>

#include "../common/base/err.h"

struct verdict {
    int status;         /* 0: go on */
    const char *reason; /* a literal for logs and metrics: "signature_bad" */
    int retry_after_s;  /* 0: no Retry-After */
    char text[512]; /* 400 and above: the text of {"detail": …}; below: the complete body, JSON */
};

/* The three return false: a check ends with `return verdict_…`, or with true to go on. */
bool verdict_refuse(struct verdict *v, int status, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* With Retry-After. */
bool verdict_later(struct verdict *v, int status, const char *reason, int retry_after_s,
                   const char *format, ...) PRINTF_LIKE(5, 6);
/* 200: valid, but not for us. */
bool verdict_ignore(struct verdict *v, const char *reason, const char *body);

#endif
