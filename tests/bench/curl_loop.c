/* The bare libcurl loop that the senders are held against: the same bodies, the same sink, as many
 * requests under way at once.
 *
 *   usage: curl_loop URL BODIES COUNT IN_FLIGHT
 *
 * Prints {"calls", "seconds", "cpu_us"}. */
#include <curl/curl.h>

#include "common/base/clock.h"
#include "support/bench.h"
#include "support/post.h"

struct loop {
    struct post post;
    struct bodies bodies;
    long started, done, count;
};

static void start(struct loop *l, CURL *easy)
{
    post_start(&l->post, easy, l->bodies.at[(size_t)l->started++ % l->bodies.n]);
}

static void collect(struct loop *l)
{
    for (CURL *easy; (easy = post_next(&l->post));) {
        l->done++;
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
        curl_multi_perform(l->post.multi, &running);
        collect(l);
        curl_multi_poll(l->post.multi, NULL, 0, 1000, NULL);
    }
}

int main(int argc, char **argv)
{
    struct loop l = { 0 };
    if (argc != 5)
        bench_die("usage: curl_loop URL BODIES COUNT IN_FLIGHT");
    bodies_read(&l.bodies, argv[2]);
    l.count = bench_number(argv[3], 1);
    post_init(&l.post, argv[1], "curl_loop");
    int64_t cpu_us = bench_cpu_us(), started_us = clock_mono_us();

    run(&l, bench_number(argv[4], 1));
    post_print(l.done, started_us, cpu_us);
    post_clear(&l.post);
    bodies_clear(&l.bodies);
    return 0;
}
