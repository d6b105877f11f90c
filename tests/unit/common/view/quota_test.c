#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/view/quota.h"

static void a_downstreams_part_follows_from_how_full_redis_is(void **state)
{
    static const int64_t gib = 1 << 30;
    const struct {
        int64_t used, max;
        size_t n;
        int64_t quota;
    } table[] = {
        { 900, 0, 10, gib },       /* no limit */
        { gib, 4 * gib, 10, gib }, /* room for all */
        { 2 * gib, 4 * gib, 10, 4 * gib / 5 * 3 / 10 },
        { 2 * gib, 4 * gib, 1, gib }, /* never more than that */
        { 2 * gib, 4 * gib, 0, gib }, /* no allowlist yet */
        { 4 * gib / 5 * 4 - 1, 4 * gib, 10, 4 * gib / 5 * 3 / 10 },
        { 4 * gib / 5 * 4, 4 * gib, 10, 0 },
        { 4 * gib - 1, 4 * gib, 1, 0 },
        { 4 * gib, 4 * gib, 1, gib }, /* Redis says so itself */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct view_memory memory = { table[i].used, table[i].max };
        assert_int_equal(view_quota(&memory, table[i].n), table[i].quota);
    }
}

static void what_redis_says_of_its_memory_is_read(void **state)
{
    struct view_memory memory = { 1, 2 };
    (void)state;
    assert_false(view_memory_read(STR_LIT("# Memory\r\nused_memory:77\r\n"), &memory));
    assert_false(view_memory_read(STR_LIT("used_memory:x\r\nmaxmemory:5\r\n"), &memory));
    assert_int_equal(memory.used, 1);
    assert_true(view_memory_read(STR_LIT("# Memory\r\nused_memory:77\r\nused_memory_rss:99\r\n"
                                         "maxmemory:4831838208\r\nmaxmemory_human:4.50G\r\n"),
                                 &memory));
    assert_int_equal(memory.used, 77);
    assert_int_equal(memory.max, 4831838208);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_downstreams_part_follows_from_how_full_redis_is),
        cmocka_unit_test(what_redis_says_of_its_memory_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
