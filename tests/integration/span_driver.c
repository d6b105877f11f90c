/* Finds the ends of topics with topic_follower, prints them, waits for a line on stdin, then prints
 * the value of each record up to there, and "end". For test_topic_span.py, which lets a topic lose
 * records meanwhile.
 *
 *     span_driver BROKERS TOPIC… */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/io/topic_follower.h"

#define TOPICS_MAX 4
#define GIVE_UP_MS 60000

static int read_on(struct topic_follower *s, size_t n)
{
    int64_t deadline = clock_mono_ms() + GIVE_UP_MS;

    while (topic_follower_seen(s).topic < n) {
        const struct record *record = topic_follower_next(s, 100);
        if (record)
            printf("%.*s\n", STR_ARG(record->value));
        fflush(stdout);
        if (clock_mono_ms() > deadline) {
            printf("waits for ever\n");
            return 1;
        }
    }
    printf("end\n");
    return 0;
}

int main(int argc, char **argv)
{
    const char *topics[TOPICS_MAX];
    struct topic_follower *s = NULL;
    struct why why;
    size_t n = argc > 2 ? (size_t)argc - 2 : 0;

    if (n == 0 || n > TOPICS_MAX) {
        fprintf(stderr, "usage: span_driver BROKERS TOPIC…\n");
        return 2;
    }
    for (size_t i = 0; i < n; i++)
        topics[i] = argv[2 + i];
    const struct topic_follower_options options = { .kafka = { .brokers = argv[1],
                                                               .client_id = "span-driver" },
                                                    .topics = topics,
                                                    .n_topics = n,
                                                    .to_ends = true };
    if (topic_follower_start(&s, &options, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    printf("total %" PRId64 "\n", topic_follower_seen(s).total);
    fflush(stdout);
    int code = getchar() == '\n' ? read_on(s, n) : 2;
    topic_follower_free(s);
    return code;
}
