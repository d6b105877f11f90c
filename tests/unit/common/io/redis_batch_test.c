/* Against a real redis-server of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/unit/support/redis_fixture.h"

#define SET(key, value) STR_LIT("SET"), STR_LIT(key), STR_LIT(value)
#define GET(key)        STR_LIT("GET"), STR_LIT(key)

static void replies_come_in_the_order_of_the_commands(void **state)
{
    struct redis_fixture *f = *state;
    struct redis_batch batch = { .redis = f->redis };
    assert_null(redis_batch_next(&batch)); /* nothing was put */
    redis_batch_put(&batch, REDIS_ARGS(SET("a", "1")));
    redis_batch_put(&batch, REDIS_ARGS(GET("a")));
    assert_true(str_is(redis_batch_next(&batch)->text, "OK"));
    assert_true(str_is(redis_batch_next(&batch)->text, "1"));
    assert_null(redis_batch_next(&batch));
    assert_int_equal(batch.err, OK);
}

static void a_failure_ends_a_batch_and_leaves_no_reply_behind(void **state)
{
    struct redis_fixture *f = *state;
    const struct redis_value *v;
    struct why why;
    struct redis_batch batch = { .redis = f->redis, .why = &why };
    redis_batch_put(&batch, REDIS_ARGS(SET("a", "1")));
    redis_batch_put(&batch, REDIS_ARGS(STR_LIT("HGETALL"), STR_LIT("a")));
    redis_batch_put(&batch, REDIS_ARGS(STR_LIT("NONSENSE"), STR_LIT("a")));
    redis_batch_put(&batch, REDIS_ARGS(GET("a")));
    assert_non_null(redis_batch_next(&batch));
    assert_null(redis_batch_next(&batch));
    assert_int_equal(batch.err, ERR_REFUSE);
    assert_non_null(strstr(why.text, "WRONGTYPE")); /* the first failure */
    redis_batch_put(&batch, REDIS_ARGS(SET("a", "2")));
    assert_null(redis_batch_next(&batch));
    assert_int_equal(redis_call(f->redis, &v, REDIS_ARGS(GET("a")), NULL), OK);
    assert_true(str_is(v->text, "1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(replies_come_in_the_order_of_the_commands, redis_fixture_empty),
        cmocka_unit_test_setup(a_failure_ends_a_batch_and_leaves_no_reply_behind,
                               redis_fixture_empty),
    };
    return cmocka_run_group_tests(tests, redis_fixture_start, redis_fixture_stop);
}
