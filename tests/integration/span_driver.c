/* Finds the ends of topics with topic_span, prints them, waits for a line on stdin, then prints the
 * value of each record up to there, and "end". For test_topic_span.py, which lets a topic lose
 * records meanwhile.
 *
 *     span_driver BROKERS TOPIC… */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/io/topic_span.h"

#define PARTS_MAX  4
#define GIVE_UP_MS 60000

static int read_on(struct topic_span *s, size_t n)
{
    int64_t deadline = clock_mono_ms() + GIVE_UP_MS;

    while (topic_span_part(s) < n) {
        const struct record *record = topic_span_next(s, 100);
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
    struct topic_span_part parts[PARTS_MAX];
    struct topic_span *s;
    struct why why;
    size_t n = argc > 2 ? (size_t)argc - 2 : 0;

    if (n == 0 || n > PARTS_MAX) {
        fprintf(stderr, "usage: span_driver BROKERS TOPIC…\n");
        return 2;
    }
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct topic_span_part){ .topic = argv[2 + i] };
    const struct kafka_options kafka = { .brokers = argv[1], .client_id = "span-driver" };
    if (topic_span_new(&s, &kafka, parts, n, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    printf("total %" PRId64 "\n", topic_span_total(s));
    fflush(stdout);
    int code = getchar() == '\n' ? read_on(s, n) : 2;
    topic_span_free(s);
    return code;
}
