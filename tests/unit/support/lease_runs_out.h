/* Time passes for leases (common/view/lease.h), which go by Redis's clock. */
#ifndef CRCR_TESTS_LEASE_RUNS_OUT_H
#define CRCR_TESTS_LEASE_RUNS_OUT_H

#include "common/base/clock.h"
#include "common/view/indexes.h"
#include "common/view/keys.h"

/* All leases of the kind now end in so many milliseconds. */
static inline void leases_end_in(struct redis *r, const char *kind, int64_t ms)
{
    struct view_index list;
    struct key *key = NEW_KEY;
    const struct redis_value *v;
    key->len = (size_t)snprintf(key->text, sizeof(key->text), "%s%s", KEY_LEASES, kind);
    struct str name = { key->text, key->len };
    assert_int_equal(index_newest(r, name, 1000, &list, NULL), OK);
    assert_true(list.n > 0);
    for (size_t i = 0; i < list.n; i++)
        assert_int_equal(
            redis_call(r, &v,
                       REDIS_ARGS(STR_LIT("ZADD"), name, STR_NUMBER(clock_wall_ms() + ms),
                                  str_of(list.at[i].name)),
                       NULL),
            OK);
    view_index_clear(&list);
}

#endif
