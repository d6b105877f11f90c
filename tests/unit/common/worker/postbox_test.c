/* What waits to be stored, without a broker: nothing ever is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/worker/postbox.h"

static const struct metric_family families[] = {
    { "not_stored", METRIC_COUNTER, "", { "topic" } },
};

static void keys_values_and_headers_count_whether_copied_or_not(void **state)
{
    const struct topic_writer_options options = { .kafka = { .brokers = "127.0.0.1:1",
                                                             .client_id = "postbox-test" } };
    struct metrics *m = metrics_new(families, 1);
    struct topics topics;
    struct headers headers;
    struct postbox *o;
    struct why why;
    (void)state;
    assert_int_equal(topics_init(&topics, "crcr.", &why), OK);
    assert_int_equal(postbox_new(&o, &options, &topics, m, 0, NULL, &why), OK);
    headers_init(&headers);
    headers_put(&headers, "name", STR_LIT("text"));
    struct post post = { .topic = TOPIC_RESULTS,
                         .key = STR_LIT("key"),
                         .value = STR_LIT("value"),
                         .headers = &headers };
    postbox_put(o, &post, NULL);
    assert_int_equal(postbox_pending_bytes(o), 3 + 5 + 8);
    post.lasting = true;
    postbox_put(o, &post, NULL);
    assert_int_equal(postbox_pending_bytes(o), 2 * (3 + 5 + 8));
    assert_int_equal(postbox_pending(o), 2);
    postbox_free(o);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_values_and_headers_count_whether_copied_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
