#include "post.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "common/base/clock.h"

void post_init(struct post *p, const char *url, const char *user_agent)
{
    char agent[64];
    snprintf(agent, sizeof(agent), "User-Agent: %s", user_agent);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    *p = (struct post){ .multi = curl_multi_init(), .url = url };
    p->headers = curl_slist_append(p->headers, "Content-Type: application/json");
    p->headers = curl_slist_append(p->headers, "Accept: application/vnd.github+json");
    p->headers = curl_slist_append(p->headers, "Authorization: Bearer ghs_bench");
    p->headers = curl_slist_append(p->headers, agent);
}

void post_clear(struct post *p)
{
    curl_multi_cleanup(p->multi);
    curl_slist_free_all(p->headers);
    curl_global_cleanup();
}

static size_t ignore(char *text, size_t size, size_t n, void *opaque)
{
    (void)text;
    (void)opaque;
    return size * n;
}

void post_start(struct post *p, CURL *easy, struct str body)
{
    curl_easy_setopt(easy, CURLOPT_URL, p->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, p->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.ptr);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(p->multi, easy);
}

CURL *post_next(struct post *p)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(p->multi, &left))) {
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        long status = 0;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (code || status != 204)
            bench_die("%s, status %ld", curl_easy_strerror(code), status);
        curl_multi_remove_handle(p->multi, easy);
        return easy;
    }
    return NULL;
}

void post_print(long calls, int64_t started_us, int64_t cpu_us)
{
    printf("{\"calls\":%ld,\"seconds\":%.6f,\"cpu_us\":%" PRId64 "}\n", calls,
           (double)(clock_mono_us() - started_us) / 1e6, bench_cpu_us() - cpu_us);
}
