#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/model/figures.h"

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* From 0.1 s to 28 h, more of the short ones; the same at each run. */
static int64_t some_time(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return 100 + (int64_t)pow(10, (double)(*seed >> 8) / (1 << 24) * 8);
}

static void quantiles_are_within_five_percent(void **state)
{
    (void)state;
    static const double parts[] = { 0.5, 0.9, 0.95, 0.99, 1 };
    static struct figures f;
    int64_t times[1000], sum = 0;
    uint32_t seed = 7;
    for (size_t i = 0; i < 1000; i++) {
        times[i] = some_time(&seed);
        sum += times[i];
        figures_add_time(&f, FIGURE_E2E, times[i]);
    }
    qsort(times, 1000, sizeof(*times), compare);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        double exact = (double)times[(size_t)ceil(parts[i] * 1000) - 1];
        double is = (double)figures_quantile_ms(&f, FIGURE_E2E, parts[i]);
        assert_true(fabs(is - exact) <= 0.0501 * exact);
    }
    assert_int_equal(figures_mean_ms(&f, FIGURE_E2E), sum / 1000);
}

static void without_times_there_is_no_mean_and_no_quantile(void **state)
{
    (void)state;
    static struct figures f;
    figures_add_time(&f, FIGURE_QUEUE, -1);
    assert_int_equal(figures_mean_ms(&f, FIGURE_QUEUE), -1);
    assert_int_equal(figures_quantile_ms(&f, FIGURE_QUEUE, 0.95), -1);
    figures_add_time(&f, FIGURE_QUEUE, 0);
    assert_int_equal(figures_mean_ms(&f, FIGURE_QUEUE), 0);
    assert_int_equal(figures_quantile_ms(&f, FIGURE_QUEUE, 0.95), 100);
    figures_add_time(&f, FIGURE_QUEUE, INT64_MAX / 2); /* beyond the last bucket */
    assert_true(figures_quantile_ms(&f, FIGURE_QUEUE, 0.95) > 1000000);
}

static void copy(const struct figures *f, struct figures *to)
{
    struct buf CLEANUP(buf_clear) lines;
    buf_init(&lines, 1 << 20);
    figures_lines(f, "", &lines);
    struct str rest = buf_str(&lines), line, name;
    int64_t n;
    while (str_split(&rest, '\n', &line)) {
        assert_true(str_split(&line, ' ', &name) && str_to_i64(line, &n));
        figures_put(to, name, n);
    }
}

static void names_and_numbers_give_the_same_figures(void **state)
{
    (void)state;
    static struct figures f, same, doubled;
    uint32_t seed = 9;
    for (size_t i = 0; i < FIGURE_COUNTS; i++)
        f.count[i] = (int64_t)i + 1;
    for (size_t i = 0; i < 100; i++)
        figures_add_time(&f, i % FIGURE_TIMES, some_time(&seed));
    copy(&f, &same);
    assert_memory_equal(&f, &same, sizeof(f));
    figures_put(&same, STR_LIT("of a newer program"), 1);
    figures_put(&same, STR_LIT("q192"), 1); /* no bucket */
    assert_memory_equal(&f, &same, sizeof(f));
    copy(&f, &doubled);
    figures_add(&doubled, &f);
    assert_int_equal(doubled.count[FIGURE_RUNS], 2 * f.count[FIGURE_RUNS]);
    assert_int_equal(figures_mean_ms(&doubled, FIGURE_QUEUE), figures_mean_ms(&f, FIGURE_QUEUE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_five_percent),
        cmocka_unit_test(without_times_there_is_no_mean_and_no_quantile),
        cmocka_unit_test(names_and_numbers_give_the_same_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
