#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/metrics.h"

enum { SENT, DEPTH, LATENCY, N_FAMILIES };

static const struct metric_family families[] = {
    [SENT] = { "crcr_sent_total",
               METRIC_COUNTER,
               "Sent \\ calls.\nBy outcome.",
               { "repo", "outcome" } },
    [DEPTH] = { "crcr_depth", METRIC_GAUGE, "Depth.", { NULL } },
    [LATENCY] = { "crcr_latency_seconds", METRIC_HISTOGRAM, "Latency.", { "kind" } },
};

static void rendered(struct metrics *m, const char *expected)
{
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 1 << 22);
    metrics_render(m, &b);
    if (!strstr(buf_str(&b).ptr, expected))
        fail_msg("no \"%s\" in:\n%s", expected, buf_str(&b).ptr);
}

static void families_without_labels_begin_at_0(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    rendered(m, "# HELP crcr_sent_total Sent \\\\ calls.\\nBy outcome.\n"
                "# TYPE crcr_sent_total counter\n"
                "# HELP crcr_depth Depth.\n# TYPE crcr_depth gauge\ncrcr_depth 0\n");
    metrics_free(m);
    metrics_free(NULL);
}

static void series_are_distinguished_by_their_labels(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    const struct str *ok = METRIC_LABELS(STR_LIT("o/r"), STR_LIT("ok"));
    metrics_add(m, SENT, ok, 1);
    metrics_add(m, SENT, ok, 1.5);
    /* The same bytes, cut elsewhere. */
    metrics_add(m, SENT, METRIC_LABELS(STR_LIT("o/ro"), STR_LIT("k")), 1);
    metrics_add(m, SENT, METRIC_LABELS(STR_LIT("a\"b\\c\n"), STR_NONE), 1);
    rendered(m, "\ncrcr_sent_total{repo=\"o/r\",outcome=\"ok\"} 2.5\n");
    rendered(m, "\ncrcr_sent_total{repo=\"o/ro\",outcome=\"k\"} 1\n");
    rendered(m, "\ncrcr_sent_total{repo=\"a\\\"b\\\\c\\n\",outcome=\"\"} 1\n");
    assert_true(metrics_value(m, SENT, ok) == 2.5);
    assert_true(metrics_value(m, SENT, METRIC_LABELS(STR_LIT("x"), STR_LIT("y"))) == 0);
    metrics_free(m);
}

static void gauges_go_up_and_down(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    metrics_set(m, DEPTH, NULL, 7);
    metrics_add(m, DEPTH, NULL, -9);
    rendered(m, "\ncrcr_depth -2\n");
    metrics_set(m, DEPTH, NULL, INFINITY);
    rendered(m, "\ncrcr_depth +Inf\n");
    metrics_set(m, DEPTH, NULL, 123456789012);
    rendered(m, "\ncrcr_depth 123456789012\n");
    metrics_free(m);
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    const struct str *kind = METRIC_LABELS(STR_LIT("x"));
    static const double seen[] = { 0.0005, 0.001, 0.02, 0.02, 59, 61, 3599, 3601 };
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
        metrics_observe(m, LATENCY, kind, seen[i]);
    rendered(m,
             "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"0.001\"} 2\n"); /* le: less or equal */
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"0.01\"} 2\n");
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"0.025\"} 4\n");
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"60\"} 5\n");
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"1800\"} 6\n");
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"3600\"} 7\n");
    rendered(m, "\ncrcr_latency_seconds_bucket{kind=\"x\",le=\"+Inf\"} 8\n");
    rendered(m, "\ncrcr_latency_seconds_sum{kind=\"x\"} 7320.0415\n");
    rendered(m, "\ncrcr_latency_seconds_count{kind=\"x\"} 8\n");
    metrics_free(m);
}

static void cardinality_is_bounded(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    for (int i = 0; i < METRICS_MAX_SERIES + 500; i++) {
        char repo[32];
        snprintf(repo, sizeof(repo), "o/r%d", i);
        metrics_add(m, SENT, METRIC_LABELS(str_of(repo), STR_LIT("ok")), 1);
    }
    assert_true(metrics_value(m, SENT, METRIC_LABELS(STR_LIT("other"), STR_LIT("other"))) == 500);
    metrics_add(m, SENT, METRIC_LABELS(STR_LIT("o/r0"), STR_LIT("ok")), 1); /* known before */
    assert_true(metrics_value(m, SENT, METRIC_LABELS(STR_LIT("o/r0"), STR_LIT("ok"))) == 2);
    metrics_free(m);
}

static void an_endless_label_is_cut(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    char *big = calloc(100001, 1);
    memset(big, 'x', 100000);
    metrics_add(m, SENT, METRIC_LABELS(str_of(big), str_of(big)), 1);
    struct buf CLEANUP(buf_clear) b;
    buf_init(&b, 1 << 22);
    metrics_render(m, &b);
    assert_true(b.len < 2000);
    free(big);
    metrics_free(m);
}

enum { THREADS = 4, TIMES = 5000 };

static void *count(void *opaque)
{
    for (int i = 0; i < TIMES; i++) {
        char repo[32];
        snprintf(repo, sizeof(repo), "o/r%d", i % 10);
        metrics_add(opaque, SENT, METRIC_LABELS(str_of(repo), STR_LIT("ok")), 1);
        metrics_observe(opaque, LATENCY, METRIC_LABELS(STR_LIT("x")), 0.001);
    }
    return NULL;
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    struct metrics *m = metrics_new(families, N_FAMILIES);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, m);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rendered(m, "\ncrcr_sent_total{repo=\"o/r7\",outcome=\"ok\"} 2000\n");
    rendered(m, "\ncrcr_latency_seconds_count{kind=\"x\"} 20000\n");
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_without_labels_begin_at_0),
        cmocka_unit_test(series_are_distinguished_by_their_labels),
        cmocka_unit_test(gauges_go_up_and_down),
        cmocka_unit_test(histograms_are_cumulative),
        cmocka_unit_test(cardinality_is_bounded),
        cmocka_unit_test(an_endless_label_is_cut),
        cmocka_unit_test(threads_lose_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
