/* The bare libcurl loop that the senders are held against: the same bodies, the same sink, as many
 * requests under way at once.
 *
 *   usage: curl_loop URL BODIES COUNT IN_FLIGHT
 *
 * Prints {"calls", "seconds", "cpu_us"}. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "support/bench.h"

struct loop {
    CURLM *multi;
    const char *url;
    struct curl_slist *headers;
    struct bodies bodies;
    long started, done, count;
};

static size_t ignore(char *text, size_t size, size_t n, void *opaque)
{
    (void)text;
    (void)opaque;
    return size * n;
}

static void start(struct loop *l, CURL *easy)
{
    struct str body = l->bodies.at[(size_t)l->started++ % l->bodies.n];
    curl_easy_setopt(easy, CURLOPT_URL, l->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, l->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.ptr);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(l->multi, easy);
}

static void collect(struct loop *l)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(l->multi, &left))) {
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        long status = 0;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (code || status != 204)
            bench_die("%s, status %ld", curl_easy_strerror(code), status);
        l->done++;
        curl_multi_remove_handle(l->multi, easy);
        if (l->started < l->count)
            start(l, easy);
        else
            curl_easy_cleanup(easy);
    }
}

static void run(struct loop *l, long in_flight)
{
    int running;
    for (long i = 0; i < in_flight && i < l->count; i++)
        start(l, curl_easy_init());
    while (l->done < l->count) {
        curl_multi_perform(l->multi, &running);
        collect(l);
        curl_multi_poll(l->multi, NULL, 0, 1000, NULL);
    }
}

int main(int argc, char **argv)
{
    struct loop l = { 0 };
    if (argc != 5)
        bench_die("usage: curl_loop URL BODIES COUNT IN_FLIGHT");
    l.url = argv[1];
    bodies_read(&l.bodies, argv[2]);
    l.count = bench_number(argv[3], 1);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    l.multi = curl_multi_init();
    l.headers = curl_slist_append(l.headers, "Content-Type: application/json");
    l.headers = curl_slist_append(l.headers, "Accept: application/vnd.github+json");
    l.headers = curl_slist_append(l.headers, "Authorization: Bearer ghs_bench");
    l.headers = curl_slist_append(l.headers, "User-Agent: curl_loop");
    int64_t cpu_us = bench_cpu_us(), started_us = clock_mono_us();

    run(&l, bench_number(argv[4], 1));
    printf("{\"calls\":%ld,\"seconds\":%.6f,\"cpu_us\":%" PRId64 "}\n", l.done,
           (double)(clock_mono_us() - started_us) / 1e6, bench_cpu_us() - cpu_us);
    curl_multi_cleanup(l.multi);
    curl_slist_free_all(l.headers);
    curl_global_cleanup();
    bodies_clear(&l.bodies);
    return 0;
}
