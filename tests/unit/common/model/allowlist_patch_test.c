#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/allowlist_patch.h"

static const struct allowlist_move up = { { "org/b", 5 }, 3, { "npu", 3 } };
static const struct allowlist_move down = { { "Org/C", 5 }, 2, { NULL, 0 } };

static void patch(const char *text, const struct allowlist_move *moves, size_t n, struct buf *to,
                  bool *rewritten)
{
    struct why why = { "" };
    buf_init(to, 1 << 20);
    if (allowlist_patch(str_of(text), ".github/allowlist.yml", moves, n, to, rewritten, &why) != OK)
        fail_msg("%s", why.text);
}

static void a_promotion_moves_one_line_and_keeps_the_comments(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("# who takes part\nL1:\n  - org/a\nL2:\n  - org/b   # soon\n  - org/d\nL3:\n  npu:\n"
          "    org/c: [alice]\n",
          &up, 1, &diff, &rewritten);
    assert_false(rewritten);
    assert_string_equal(diff.ptr, "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                                  "@@ -2,8 +2,8 @@\n L1:\n   - org/a\n L2:\n"
                                  "-  - org/b   # soon\n   - org/d\n L3:\n   npu:\n"
                                  "     org/c: [alice]\n+    org/b: []\n");
}

static void a_new_device_gets_its_own_mapping(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b: {events: [nightly], oncalls: [bob]}\nL3:\n    cpu:\n        org/c: []\n",
          &up, 1, &diff, &rewritten);
    assert_false(rewritten);
    assert_string_equal(diff.ptr, "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                                  "@@ -1,5 +1,6 @@\n L2:\n"
                                  "-  - org/b: {events: [nightly], oncalls: [bob]}\n L3:\n"
                                  "+    npu:\n"
                                  "+        org/b: {events: [nightly], oncalls: [bob]}\n"
                                  "     cpu:\n         org/c: []\n");
}

static void a_demotion_takes_an_empty_device_along(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b\nL3:\n  npu:\n    org/c:\n      - alice\n", &down, 1, &diff, &rewritten);
    assert_false(rewritten);
    assert_string_equal(diff.ptr, "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                                  "@@ -1,6 +1,4 @@\n L2:\n   - org/b\n+  - org/c: [alice]\n L3:\n"
                                  "-  npu:\n-    org/c:\n-      - alice\n");
}

static void both_ways_at_once(void **state)
{
    (void)state;
    const struct allowlist_move moves[] = { up, down };
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b\nL3:\n  npu:\n    org/c: []\n", moves, 2, &diff, &rewritten);
    assert_false(rewritten);
    assert_string_equal(diff.ptr, "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                                  "@@ -1,5 +1,5 @@\n L2:\n-  - org/b\n+  - org/c\n L3:\n   npu:\n"
                                  "-    org/c: []\n+    org/b: []\n");
}

static void flow_style_is_written_anew_and_says_so(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2: [org/b]\nL3:\n  npu: { org/c: [alice] }\nL4:\n  - org/f: carol\n", &up, 1, &diff,
          &rewritten);
    assert_true(rewritten);
    assert_string_equal(diff.ptr,
                        "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                        "@@ -1,5 +1,8 @@\n-L2: [org/b]\n-L3:\n-  npu: { org/c: [alice] }\n-L4:\n"
                        "-  - org/f: carol\n+L1:\n+L2:\n+L3:\n+  npu:\n+    org/b: []\n"
                        "+    org/c: [alice]\n+L4:\n+  - org/f: [carol]\n");
}

static void a_last_line_without_a_newline_gets_one(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b", &up, 1, &diff, &rewritten);
    assert_false(rewritten);
    assert_string_equal(diff.ptr, "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                                  "@@ -1,2 +1,4 @@\n L2:\n-  - org/b\n"
                                  "\\ No newline at end of file\n+L3:\n+  npu:\n+    org/b: []\n");
}

static void distant_changes_are_hunks_of_their_own(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b\n  - o/1\n  - o/2\n  - o/3\n  - o/4\n  - o/5\n  - o/6\n  - o/7\nL3:\n"
          "  npu:\n    org/c: []\n",
          &up, 1, &diff, &rewritten);
    assert_string_equal(diff.ptr,
                        "--- a/.github/allowlist.yml\n+++ b/.github/allowlist.yml\n"
                        "@@ -1,5 +1,4 @@\n L2:\n-  - org/b\n   - o/1\n   - o/2\n   - o/3\n"
                        "@@ -10,3 +9,4 @@\n L3:\n   npu:\n     org/c: []\n"
                        "+    org/b: []\n");
}

static void without_moves_there_is_no_patch(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    bool rewritten;
    patch("L2:\n  - org/b", NULL, 0, &diff, &rewritten);
    assert_int_equal(diff.len, 0);
}

static void who_is_not_listed_cannot_be_moved(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) diff;
    struct why why = { "" };
    bool rewritten;
    buf_init(&diff, 1000);
    assert_int_equal(allowlist_patch(STR_LIT("L1: [org/a]"), "x", &up, 1, &diff, &rewritten, &why),
                     ERR_REFUSE);
    assert_string_equal(why.text, "org/b is not on the allowlist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promotion_moves_one_line_and_keeps_the_comments),
        cmocka_unit_test(a_new_device_gets_its_own_mapping),
        cmocka_unit_test(a_demotion_takes_an_empty_device_along),
        cmocka_unit_test(both_ways_at_once),
        cmocka_unit_test(flow_style_is_written_anew_and_says_so),
        cmocka_unit_test(a_last_line_without_a_newline_gets_one),
        cmocka_unit_test(distant_changes_are_hunks_of_their_own),
        cmocka_unit_test(without_moves_there_is_no_patch),
        cmocka_unit_test(who_is_not_listed_cannot_be_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
