/* What readers and writers hold in memory, against a real broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <malloc.h>
#include <cmocka.h>

#include "live_kafka.h"

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak)); /* ASan's own heap */

static size_t allocated(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* librdkafka keeps a whole fetch for as long as a message of it is held. */
static void a_small_record_in_hand_keeps_none_of_its_large_neighbours(void **state)
{
    enum { PAIRS = 300, LARGE = 200000, MOST = 24 << 20 };
    static char block[LARGE];
    char topic[64];
    const char *topics[] = { topic };
    struct record *small[PAIRS];
    struct why why;

    (void)state;
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    for (int i = 0; i < PAIRS; i++) {
        assert_ok(
            topic_writer_put(w, &(struct new_record){ .topic = topic, .value = STR_LIT("small") },
                             NULL, NULL, &why));
        assert_ok(
            topic_writer_put(w, &(struct new_record){ .topic = topic, .value = { block, LARGE } },
                             NULL, NULL, &why));
    }
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    topic_writer_free(w);
    const struct topic_reader_options options = {
        .kafka = live_kafka(), .group = topic, .topics = topics, .n_topics = 1
    };
    size_t before = allocated();
    struct topic_reader *r = live_reader(&options);
    for (int i = 0; i < PAIRS; i++) {
        small[i] = live_next(r);
        record_done(live_next(r));
    }
    size_t after = allocated();
    if (after > before + MOST)
        fail_msg("%d small records keep %zu bytes", PAIRS, after - before);
    for (int i = 0; i < PAIRS; i++)
        record_done(small[i]);
    topic_reader_free(r);
}

/* A router has each body in the queue once for every tier. */
static void what_is_lent_is_not_copied(void **state)
{
    enum { RECORDS = 100, LARGE = 100000, MOST = RECORDS * LARGE / 10 };
    static char block[LARGE];
    char topic[64];
    struct why why;

    (void)state;
    live_topic(topic, 1);
    struct topic_writer *w = live_writer();
    assert_ok(topic_writer_put_wait(w, topic, STR_NONE, STR_LIT("v"), NULL, NULL, &why));
    size_t before = allocated();
    for (int i = 0; i < RECORDS; i++)
        assert_ok(
            topic_writer_lend(w, &(struct new_record){ .topic = topic, .value = { block, LARGE } },
                              NULL, NULL, &why));
    size_t after = allocated();
    if (after > before + MOST)
        fail_msg("%d records of %d bytes take %zu", RECORDS, LARGE, after - before);
    assert_ok(topic_writer_flush(w, WAIT_MS, &why));
    topic_writer_free(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_record_in_hand_keeps_none_of_its_large_neighbours),
        cmocka_unit_test(what_is_lent_is_not_copied),
    };
    if (argc > 1) /* the name of one test */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
