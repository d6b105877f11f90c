/* libcurl's multi interface alone, posting as the senders do, for the drivers that are a floor
 * under them. */
#ifndef CRCR_BENCH_POST_H
#define CRCR_BENCH_POST_H

#include "common/base/str.h"

struct curl_slist;

struct post {
    void *multi; /* CURLM */
    struct curl_slist *headers;
    const char *url; /* borrowed */
};
/* Starts libcurl too. */
void post_init(struct post *p, const char *url, const char *user_agent);
void post_clear(struct post *p);

/* Begins one call with easy (CURL), which stays the caller's. body is borrowed until its end. */
void post_start(struct post *p, void *easy, struct str body);
/* The CURL of the next call that has ended, with 204; NULL: none. Any other end ends the driver. */
void *post_next(struct post *p);
/* {"calls", "seconds", "cpu_us"}, of the time since started_us and what bench_cpu_us has counted
 * since it was cpu_us. */
void post_print(long calls, int64_t started_us, int64_t cpu_us);

#endif
