#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <string.h>
#include <cmocka.h>

#include "reporter/web/pipeline_put.h"

#define NOW 1790000000000LL

static struct topics topics;
static struct pipeline_look look;
static struct pipeline_view view;

static int start(void **state)
{
    (void)state;
    memset(&look, 0, sizeof(look));
    look.at_ms = NOW;
    for (int g = 0; g < GROUP_COUNT; g++) {
        size_t n;
        const enum topic *reads = topics_of_group((enum group)g, &n);
        for (size_t t = 0; t < n; t++)
            look.waiting[g][t] = (struct waiting){ .topic = reads[t], .text.offset = -1 };
    }
    view = (struct pipeline_view){ .topics = &topics,
                                   .look = &look,
                                   .error = "",
                                   .now_ms = NOW,
                                   .sha = "abc",
                                   .redis_error = "",
                                   .refused = "" };
    return topics_init(&topics, "crcr.", NULL);
}

static json_t *read(void (*put)(struct buf *, const struct pipeline_view *))
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, 1 << 20);
    put(&text, &view);
    json_t *root = json_loads(buf_str(&text).ptr, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

/* Of the first topic of a role in /api/crcr/pipeline: the oldest record, to be released; and how
 * long the role waits by the cards. */
static json_t *oldest_of(const char *role, size_t topic)
{
    json_t *root = read(pipeline_put), *found = NULL, *group;
    size_t i;
    json_array_foreach(json_object_get(root, "groups"), i,
                       group) if (strcmp(json_string_value(json_object_get(group, "role")), role) ==
                                  0) found =
        json_object_get(json_array_get(json_object_get(group, "topics"), topic), "oldest");
    json_incref(found);
    json_decref(root);
    return found;
}

static double seconds_of(const char *role)
{
    json_t *root = read(health_put), *one;
    double seconds = -1;
    size_t i;
    json_array_foreach(json_object_get(root, "roles"), i,
                       one) if (strcmp(json_string_value(json_object_get(one, "role")), role) == 0)
        seconds = json_real_value(json_object_get(one, "seconds"));
    json_decref(root);
    return seconds;
}

static struct record record(int64_t offset, int64_t at_ms)
{
    struct record r = { .at = { "t", 3, offset }, .timestamp_ms = at_ms, .key = STR_LIT("k") };
    headers_init(&r.headers);
    headers_put(&r.headers, "error", STR_LIT("503 \"from\" GitHub"));
    return r;
}

static void the_oldest_record_is_shown_and_counts(void **state)
{
    (void)state;
    struct waiting *w = &look.waiting[GROUP_L4][0];
    struct record newer = record(9, NOW - 1000), older = record(7, NOW - 31000);
    w->records = 2;
    waiting_note(w, &newer);
    waiting_note(w, &older);
    waiting_note(w, &newer);
    assert_int_equal(w->records, 2);
    assert_true(seconds_of("l4") == 31);
    assert_true(seconds_of("l3") == 0);
    json_t *oldest = oldest_of("l4", 0);
    assert_string_equal(json_string_value(json_object_get(oldest, "position")), "3@7");
    assert_string_equal(json_string_value(json_object_get(oldest, "error")), "503 \"from\" GitHub");
    assert_true(json_is_null(json_object_get(oldest, "attempt")));
    json_decref(oldest);
}

static void what_is_put_off_waits_only_from_its_time_on(void **state)
{
    (void)state;
    struct waiting *w = &look.waiting[GROUP_DELAY][3];
    struct record later = record(1, NOW - 3000000), first = record(2, NOW - 2000000);
    headers_put_i64(&later.headers, "not_before_ms", NOW + 9000);
    headers_put_i64(&first.headers, "not_before_ms", NOW + 5000);
    waiting_note(w, &later);
    waiting_note(w, &first);
    assert_true(seconds_of("delay") == 0);
    look.at_ms = NOW + 66000;
    assert_true(seconds_of("delay") == 61);
    json_t *oldest = oldest_of("delay", 3);
    assert_string_equal(json_string_value(json_object_get(oldest, "position")), "3@2");
    json_decref(oldest);
}

static void what_is_not_known_is_null(void **state)
{
    (void)state;
    look.at_ms = 0;
    json_t *root = read(health_put);
    assert_int_equal(json_array_size(json_object_get(root, "roles")), 0);
    assert_true(json_is_null(json_object_get(json_object_get(root, "dlq"), "open")));
    assert_true(json_is_null(json_object_get(json_object_get(root, "breakers"), "open")));
    assert_true(json_is_null(json_object_get(json_object_get(root, "dispatches"), "dispatched")));
    json_decref(root);
    root = read(pipeline_put);
    assert_int_equal(json_array_size(json_object_get(root, "groups")), 0);
    assert_true(json_is_null(json_object_get(root, "looked_at")));
    json_decref(root);
}

static void of_the_dlq_the_newest_are_shown_and_all_counted(void **state)
{
    (void)state;
    struct open_dlq *dlq = open_dlq_new();
    for (int i = 0; i < PIPELINE_DLQ_SHOWN + 5; i++) {
        struct record r = record(i, NOW + i);
        open_dlq_add(dlq, &r);
    }
    open_dlq_sort(dlq);
    view.dlq = dlq;
    json_t *root = read(pipeline_put);
    const json_t *queue = json_object_get(root, "dlq"), *list = json_object_get(queue, "entries");
    assert_int_equal(json_integer_value(json_object_get(queue, "open")), PIPELINE_DLQ_SHOWN + 5);
    assert_int_equal(json_array_size(list), PIPELINE_DLQ_SHOWN);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "position")),
                        "3@204");
    json_decref(root);
    open_dlq_free(dlq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_oldest_record_is_shown_and_counts, start),
        cmocka_unit_test_setup(what_is_put_off_waits_only_from_its_time_on, start),
        cmocka_unit_test_setup(what_is_not_known_is_null, start),
        cmocka_unit_test_setup(of_the_dlq_the_newest_are_shown_and_all_counted, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
