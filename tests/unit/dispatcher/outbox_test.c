/* What it does without a broker: nothing is ever stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

struct refusal {
    int n;
    char reason[128];
};

static void never_stored(void *opaque)
{
    (void)opaque;
    fail();
}

static void on_refused(void *opaque, const char *reason)
{
    struct refusal *r = opaque;
    r->n++;
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static void what_is_refused_is_given_back_and_not_written_again(void **state)
{
    enum { TOO_LARGE = 27 << 20 };
    const struct kafka_options kafka = { .brokers = "127.0.0.1:1", .client_id = "outbox-test" };
    struct metrics *m = metrics_new(dispatcher_metrics, dispatcher_n_metrics);
    struct refusal told = { 0 }, forgotten = { 0 };
    char *value = calloc(1, TOO_LARGE);
    struct headers headers;
    struct outbox *o;
    struct why why;
    (void)state;
    assert_non_null(value);
    assert_int_equal(outbox_new(&o, &kafka, NULL, m, M_NOT_STORED, &why), OK);
    headers_init(&headers);
    struct post post = {
        .topic = "t",
        .key = STR_LIT("key"),
        .value = { value, TOO_LARGE },
        .lasting = true,
        .headers = &headers,
        .refused = on_refused,
    };
    outbox_put(o, &post, never_stored, &told);
    outbox_put(o, &post, never_stored, &forgotten);
    assert_int_equal(told.n, 0); /* not from inside outbox_put */
    outbox_forget(o, &forgotten);
    outbox_turn(o);
    assert_int_equal(told.n, 1);
    assert_non_null(strstr(told.reason, "too large"));
    assert_int_equal(forgotten.n, 0);
    assert_int_equal(outbox_pending(o), 0);
    post.refused = NULL; /* nobody cares: it stays */
    outbox_put(o, &post, never_stored, &told);
    outbox_turn(o);
    assert_int_equal(outbox_pending(o), 1);
    outbox_free(o);
    free(value);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_values_and_headers_count_whether_copied_or_not),
        cmocka_unit_test(what_is_refused_is_given_back_and_not_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
