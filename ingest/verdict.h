/* What is to become of a request: go on with it, or answer it now. PURE modules fill one;
 * responder.c sends it. */
#ifndef CRCR_INGEST_VERDICT_H
#define CRCR_INGEST_VERDICT_H

#include <stdbool.h>

#include "../common/base/err.h"

struct verdict {
    int status;         /* 0: go on */
    const char *reason; /* a literal for logs and metrics: "signature_bad" */
    int retry_after_s;  /* 0: no Retry-After */
    char text[512];     /* what becomes {"detail": …}; below 400: the whole body, JSON */
};

/* The three return false, so that a checking function can end with them; true means go on. */
bool verdict_refuse(struct verdict *v, int status, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* With Retry-After. */
bool verdict_later(struct verdict *v, int status, const char *reason, int retry_after_s,
                   const char *format, ...) PRINTF_LIKE(5, 6);
/* 200: it is fine, and none of our business. */
bool verdict_ignore(struct verdict *v, const char *reason, const char *body);

#endif
