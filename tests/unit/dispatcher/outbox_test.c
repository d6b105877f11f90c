/* What it counts, without a broker: nothing is ever stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/metrics.h"
#include "dispatcher/outbox.h"

static void keys_values_and_headers_count_whether_copied_or_not(void **state)
{
    (void)state;
    const struct kafka_options kafka = { .brokers = "127.0.0.1:1", .client_id = "outbox-test" };
    struct metrics *m = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
    struct headers headers;
    struct outbox *o;
    struct why why;
    assert_int_equal(outbox_new(&o, &kafka, NULL, m, M_NOT_STORED, &why), OK);
    headers_init(&headers);
    headers_put(&headers, "name", STR_LIT("text"));
    struct post post = {
        .topic = "t", .key = STR_LIT("key"), .value = STR_LIT("value"), .headers = &headers
    };
    outbox_put(o, &post, NULL, NULL);
    assert_int_equal(outbox_pending_bytes(o), 3 + 5 + 8);
    post.lasting = true;
    outbox_put(o, &post, NULL, NULL);
    assert_int_equal(outbox_pending_bytes(o), 2 * (3 + 5 + 8));
    assert_int_equal(outbox_pending(o), 2);
    outbox_free(o);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_values_and_headers_count_whether_copied_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
