/* What to do with a request: go on, or answer now. PURE modules fill one; responder.c sends it. */
#ifndef CRCR_INGEST_ANSWER_H
#define CRCR_INGEST_ANSWER_H

#include <stdbool.h>

#include "../common/base/err.h"

struct answer {
    int status;         /* 0: go on */
    const char *reason; /* a literal for logs and metrics: "signature_bad" */
    int retry_after_s;  /* 0: no Retry-After */
    char text[512]; /* 400 and above: the text of {"detail": …}; below: the complete body, JSON */
};

/* The three return false: a check ends with `return answer_…`, or with true to go on. */
bool answer_refuse(struct answer *a, int status, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* With Retry-After. */
bool answer_later(struct answer *a, int status, const char *reason, int retry_after_s,
                  const char *format, ...) PRINTF_LIKE(5, 6);
/* 200: valid, but not for us. */
bool answer_ignore(struct answer *a, const char *reason, const char *body);

#endif
