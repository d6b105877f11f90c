#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "common/model/ids.h"
#include "common/view/keys.h"

#define assert_key(key, text) assert_string_equal((key).ptr, text)

static int setup(void **state)
{
    static struct key key;
    *state = &key;
    return 0;
}

static void keys_are_as_the_table_says(void **state)
{
    struct key *b = *state;
    struct str repo = STR_LIT("org/a"), delivery = STR_LIT("d-1");
    assert_key(key_claim(b, delivery, repo, "dispatch", STR_NONE, STR_NONE),
               "claim:d-1|org/a|dispatch|");
    assert_key(key_claim(b, delivery, repo, "rerun_all", STR_LIT("9"), STR_NONE),
               "claim:d-1|org/a|rerun_all|9");
    assert_key(key_claim(b, delivery, repo, "dispatch", STR_NONE, STR_LIT("ab12")),
               "claim:d-1|org/a|dispatch||ab12");
    assert_key(key_seq(b, repo, STR_LIT("up/s#7")), "seq:org/a|up/s#7");
    assert_key(key_rate(b, repo, ""), "rate:org/a");
    assert_key(key_rate(b, repo, "|pending"), "rate:org/a|pending");
    assert_key(key_job(b, STR_LIT("org%2Fa/d/w/j/1")), "job:org%2Fa/d/w/j/1");
    assert_key(key_dispatch(b, delivery, repo), "dispatch:d-1/org/a");
    assert_key(key_delivery(b, delivery), "delivery:d-1");
    assert_key(key_pr(b, 123), "pr:123");
    assert_key(key_repo(b, repo, ""), "repo:org/a");
    assert_key(key_repo(b, repo, "|pr"), "repo:org/a|pr");
    assert_key(key_spent(b, repo), "spent:org/a");
    assert_key(key_head(b, STR_LIT("abc"), repo), "head:abc/org/a");
    assert_key(key_labels(b, 5), "labels:5");
    assert_key(key_check(b, STR_LIT("abc"), STR_LIT("crcr/Org/a/w")), "check:abc/crcr/Org/a/w");
    assert_key(key_comment(b, 5, repo), "comment:5/org/a");
    assert_key(key_self(b, STR_LIT("d-1")), "self:d-1");
    assert_key(key_selfrun(b, STR_LIT("run:A%2F7"), STR_LIT("Org/Four")),
               "selfrun:run:A%2F7/org/four");
    assert_key(key_commit(b, STR_LIT("ABC")), "commit:abc");
}

static void the_case_of_a_repository_makes_no_difference(void **state)
{
    struct key *b = *state;
    struct str repo = STR_LIT("OrG/A.b-Z"), delivery = STR_LIT("D-1");
    assert_key(key_claim(b, delivery, repo, "dispatch", STR_NONE, STR_NONE),
               "claim:D-1|org/a.b-z|dispatch|");
    assert_key(key_seq(b, repo, STR_LIT("U/S#7")), "seq:org/a.b-z|U/S#7");
    assert_key(key_rate(b, repo, ""), "rate:org/a.b-z");
    assert_key(key_dispatch(b, delivery, repo), "dispatch:D-1/org/a.b-z");
    assert_key(key_repo(b, repo, ""), "repo:org/a.b-z");
    assert_key(key_head(b, STR_LIT("abc"), repo), "head:abc/org/a.b-z");
}

static void the_longest_job_key_fits(void **state)
{
    struct key *b = *state;
    struct buf job;
    char odd[512];
    memset(odd, ':', sizeof(odd));
    struct str name = { odd, sizeof(odd) };
    buf_init(&job, VIEW_KEY_MAX);
    job_key(&job, (struct str){ odd, 140 }, (struct str){ odd, 64 }, name, name,
            (struct str){ odd, 128 + 40 });
    assert_false(buf_full(&job));
    struct str key = key_job(b, buf_str(&job));
    assert_int_equal(key.len, strlen("job:") + job.len);
    buf_clear(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keys_are_as_the_table_says, setup),
        cmocka_unit_test_setup(the_case_of_a_repository_makes_no_difference, setup),
        cmocka_unit_test_setup(the_longest_job_key_fits, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
