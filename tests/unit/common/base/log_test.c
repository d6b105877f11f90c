#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"

/* stderr goes to a file between these two. */
static FILE *file;
static int before;

static void capture(void)
{
    file = tmpfile();
    before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
}

/* What was written, the caller's. */
static char *captured(void)
{
    dup2(before, STDERR_FILENO);
    close(before);
    long size = (fseek(file, 0, SEEK_END), ftell(file));
    char *text = calloc((size_t)size + 1, 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

static void a_json_line_has_everything_in_order(void **state)
{
    (void)state;
    log_init("crcr-test", LOG_INFO, LOG_JSON);
    capture();
    log_info("dispatch_sent", LOG_STR("delivery", STR_LIT("d\"1")), LOG_INT("attempt", -2),
             LOG_REAL("seconds", 0.25), LOG_REAL("none", NAN), LOG_BOOL("again", true),
             LOG_STR("absent", STR_NONE));
    char *text = captured();
    assert_memory_equal(text, "{\"at\":\"20", 9);
    assert_string_equal(strstr(text, ",\"level\""),
                        ",\"level\":\"info\",\"daemon\":\"crcr-test\",\"event\":\"dispatch_sent\","
                        "\"delivery\":\"d\\\"1\",\"attempt\":-2,\"seconds\":0.25,\"none\":null,"
                        "\"again\":true,\"absent\":null}\n");
    free(text);
}

static void a_text_line_quotes_what_needs_it(void **state)
{
    (void)state;
    log_init("crcr-test", LOG_INFO, LOG_TEXT);
    capture();
    log_warn("parked", LOG_STR("repo", STR_LIT("o/r")), LOG_STR("reason", STR_LIT("a b\n")),
             LOG_STR("empty", STR_LIT("")));
    char *text = captured();
    assert_string_equal(strchr(text, ' '), " warn  parked repo=o/r reason=\"a b\\n\" empty=\"\"\n");
    free(text);
}

static void lower_levels_are_not_written(void **state)
{
    (void)state;
    log_init("crcr-test", LOG_WARN, LOG_JSON);
    capture();
    log_debug("no", LOG_INT("n", 1));
    log_info("no", LOG_INT("n", 1));
    log_error("yes", LOG_INT("n", 1));
    char *text = captured();
    assert_null(strstr(text, "\"no\""));
    assert_non_null(strstr(text, "\"level\":\"error\",\"daemon\":\"crcr-test\",\"event\":\"yes\""));
    free(text);
}

static void an_endless_value_is_cut_and_the_line_is_still_json(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *value = malloc(LONG);
    for (size_t i = 0; i < LONG; i += 2)
        memcpy(value + i, i % 4 ? "\x01\x02" : "ä", 2);
    log_init("crcr-test", LOG_INFO, LOG_JSON);
    capture();
    struct str s = { value, LONG };
    log_info("big", LOG_STR("a", s), LOG_STR("b", s), LOG_STR("c", s), LOG_STR("d", s),
             LOG_STR("e", s), LOG_STR("f", s), LOG_STR("g", s), LOG_INT("last", 1));
    char *text = captured();
    json_t *line = json_loads(text, 0, NULL);
    assert_non_null(line);
    assert_true(json_string_length(json_object_get(line, "a")) <= 2048);
    assert_true(strlen(text) <= 32 * 1024);
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_decref(line);
    free(text);
    free(value);
}

enum { THREADS = 4, LINES = 500 };

static void *write_lines(void *opaque)
{
    for (int i = 0; i < LINES; i++)
        log_info("line", LOG_STR("thread", str_of(opaque)), LOG_INT("i", i));
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    static char names[THREADS][2] = { "a", "b", "c", "d" };
    log_init("crcr-test", LOG_INFO, LOG_JSON);
    capture();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_lines, names[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *text = captured();
    struct str rest = str_of(text), line;
    int n = 0;
    while (str_split(&rest, '\n', &line)) {
        json_t *json = json_loadb(line.ptr, line.len, 0, NULL);
        assert_non_null(json);
        json_decref(json);
        n++;
    }
    assert_int_equal(n, THREADS * LINES);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_line_has_everything_in_order),
        cmocka_unit_test(a_text_line_quotes_what_needs_it),
        cmocka_unit_test(lower_levels_are_not_written),
        cmocka_unit_test(an_endless_value_is_cut_and_the_line_is_still_json),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
