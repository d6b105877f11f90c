#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/ids.h"

#define VALID(fn, text)   assert_true(fn(STR_LIT(text)))
#define INVALID(fn, text) assert_false(fn(STR_LIT(text)))

static void the_account_of_a_repository_is_its_owner_in_any_case(void **state)
{
    (void)state;
    static const struct {
        const char *repo, *account;
    } rows[] = { { "Org-A/Back.end", "org-a" },
                 { "org/a/b", "org" },
                 { "*", "*" },
                 { "ORG", "org" },
                 { "/a", "" },
                 { "", "" } };
    char to[REPO_MAX + 1], large[REPO_MAX + 2];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        repo_account(to, str_of(rows[i].repo));
        assert_string_equal(to, rows[i].account);
    }
    memset(large, 'a', sizeof(large));
    repo_account(to, (struct str){ large, REPO_MAX });
    assert_int_equal(strlen(to), REPO_MAX);
    repo_account(to, (struct str){ large, sizeof(large) });
    assert_string_equal(to, "");
}

static void delivery_is_letters_digits_and_dashes(void **state)
{
    (void)state;
    VALID(delivery_valid, "72d3162e-cc78-11e3-81ab-4c9367dc0958");
    VALID(delivery_valid, "a");
    VALID(delivery_valid, "0123456789012345678901234567890123456789012345678901234567890123");
    INVALID(delivery_valid, "01234567890123456789012345678901234567890123456789012345678901234");
    INVALID(delivery_valid, "");
    INVALID(delivery_valid, "a b");
    INVALID(delivery_valid, "a_b");
    INVALID(delivery_valid, "a/b");
    INVALID(delivery_valid, "a\0b");
    assert_false(delivery_valid(STR_NONE));
}

static void repo_is_owner_slash_name(void **state)
{
    (void)state;
    VALID(repo_valid, "pytorch/pytorch");
    VALID(repo_valid, "Org-1/x._-9");
    INVALID(repo_valid, "pytorch");
    INVALID(repo_valid, "/pytorch");
    INVALID(repo_valid, "pytorch/");
    INVALID(repo_valid, "a/b/c");
    INVALID(repo_valid, "a_b/c");
    INVALID(repo_valid, "a/.");
    INVALID(repo_valid, "a/..");
    INVALID(repo_valid, "a/b\0c");
    INVALID(repo_valid, "0123456789012345678901234567890123456789/r");
    assert_false(repo_valid(STR_NONE));
}

static void sha_is_seven_to_sixty_four_hex_digits(void **state)
{
    (void)state;
    VALID(sha_valid, "ec26c3e");
    VALID(sha_valid, "EC26C3E57CA3A959CA5AAD62DE7213C562F8C821");
    INVALID(sha_valid, "ec26c3");
    INVALID(sha_valid, "ec26c3g");
    INVALID(sha_valid, "00000000000000000000000000000000000000000000000000000000000000000");
}

static void a_commit_is_not_abbreviated(void **state)
{
    (void)state;
    VALID(commit_valid, "EC26C3E57CA3A959CA5AAD62DE7213C562F8C821");
    VALID(commit_valid, "0000000000000000000000000000000000000000000000000000000000000000");
    INVALID(commit_valid, "ec26c3e");
    INVALID(commit_valid, "ec26c3e57ca3a959ca5aad62de7213c562f8c82");
    INVALID(commit_valid, "ec26c3e57ca3a959ca5aad62de7213c562f8c8211");
    INVALID(commit_valid, "zc26c3e57ca3a959ca5aad62de7213c562f8c821");
}

static void ciflow_tag_names_its_pull_request(void **state)
{
    (void)state;
    int64_t pr = 0;
    assert_true(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/trunk/123"), &pr));
    assert_int_equal(pr, 123);
    assert_true(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/a/b/7"), &pr));
    assert_int_equal(pr, 7);
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/123"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow//123"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/trunk/"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/trunk/0"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/trunk/x1"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/tags/ciflow/trunk/99999999999999999999"), &pr));
    assert_false(ciflow_tag_pr(STR_LIT("refs/heads/ciflow/trunk/123"), &pr));
    assert_int_equal(pr, 7);
}

static void ciflow_label_names_its_device(void **state)
{
    (void)state;
    struct str device = STR_NONE;
    assert_true(ciflow_label_device(STR_LIT("ciflow/crcr/npu"), &device));
    assert_true(str_is(device, "npu"));
    assert_true(ciflow_label_device(STR_LIT("CIFlow/CRCR/Npu"), &device)); /* as GitHub does */
    assert_true(str_is(device, "Npu"));
    assert_false(ciflow_label_device(STR_LIT("ciflow/crcr/"), &device));
    assert_false(ciflow_label_device(STR_LIT("ciflow/trunk"), &device));
}

static void job_key_encodes_each_part(void **state)
{
    (void)state;
    struct buf key;
    buf_init(&key, 1000);
    job_key(&key, STR_LIT("o/r"), STR_LIT("d-1"), STR_LIT("a:b c"), STR_LIT("\xc3\xa9/%"),
            STR_LIT("9-1~._"));
    assert_true(str_is(buf_str(&key), "o%2Fr/d-1/a%3Ab%20c/%C3%A9%2F%25/9-1~._"));
    buf_clear(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_account_of_a_repository_is_its_owner_in_any_case),
        cmocka_unit_test(delivery_is_letters_digits_and_dashes),
        cmocka_unit_test(repo_is_owner_slash_name),
        cmocka_unit_test(sha_is_seven_to_sixty_four_hex_digits),
        cmocka_unit_test(a_commit_is_not_abbreviated),
        cmocka_unit_test(ciflow_tag_names_its_pull_request),
        cmocka_unit_test(ciflow_label_names_its_device),
        cmocka_unit_test(job_key_encodes_each_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
