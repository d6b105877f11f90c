/* Nothing from outside reaches a terminal raw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "deploy/crcrctl/out.h"

static void expect(void (*clean)(struct buf *, struct str), struct str text, const char *wanted)
{
    struct buf to;
    buf_init(&to, 4096);
    clean(&to, text);
    assert_string_equal(to.ptr, wanted);
    buf_clear(&to);
}

static void in_a_line_controls_become_blanks(void **state)
{
    (void)state;
    expect(clean_line, STR_LIT("a\033[31mb\nc\td\x7f"), "a [31mb c d ");
    expect(clean_line, STR_LIT("x\0y"), "x y");
    expect(clean_line,
           STR_LIT("a\xc2\x9b"
                   "31m é"),
           "a 31m é");
}

static void what_turns_the_direction_and_a_byte_that_is_no_utf8_become_blanks(void **state)
{
    (void)state;
    static const char *const marks[] = { "\u061c", "\u200e", "\u200f", "\u202a", "\u202e",
                                         "\u2066", "\u2069", "\x9b",   "\x80",   "\xe2\x80" };
    enum { N = sizeof(marks) / sizeof(marks[0]) };
    char text[32];
    for (size_t i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "a%sb", marks[i]);
        expect(clean_line, str_of(text), i < N - 1 ? "a b" : "a  b");
    }
    expect(
        clean_line, STR_LIT("\u011b \u200d \u2027 \u202f \u2065"),
        "\u011b \u200d \u2027 \u202f \u2065"); /* 0x9b within a letter; neighbours of the marks */
    expect(clean_text, STR_LIT("a\u202eb\x9b"), "a\\xe2\\x80\\xaeb\\x9b");
}

static void in_a_text_controls_are_written_out_and_lines_stay(void **state)
{
    (void)state;
    expect(clean_text, STR_LIT("a\033[31m\n\tb\r"), "a\\x1b[31m\n\tb\\x0d");
    expect(clean_text,
           STR_LIT("a\xc2\x9b"
                   "b"),
           "a\\xc2\\x9bb");
    expect(clean_text, STR_LIT("é ✓\xc2"), "é ✓\\xc2");
}

static void assert_fitted(const char *line, size_t width, const char *wanted)
{
    struct buf CLEANUP(buf_clear) to = BUF_INIT(4096);
    put_fitted(&to, str_of(line), width);
    assert_string_equal(to.ptr, wanted);
}

static void a_line_is_cut_to_the_width_by_characters_and_keeps_its_colours(void **state)
{
    (void)state;
    assert_fitted("abcdef", 0, "abcdef");
    assert_fitted("abcdef", 6, "abcdef");
    assert_fitted("abcdef", 5, "abcd…");
    assert_fitted("äöüß", 4, "äöüß");
    assert_fitted("äöüß", 3, "äö…");
    assert_fitted("\033[31mabcd\033[0m", 4, "\033[31mabcd\033[0m");
    assert_fitted("\033[31mabcd\033[0mef", 3, "\033[31mab…\033[0m");
}

static void assert_wrapped(const char *text, size_t width, const char *wanted)
{
    struct buf CLEANUP(buf_clear) to = BUF_INIT(4096);
    put_wrapped(&to, str_of(text), 2, 4, width);
    assert_string_equal(to.ptr, wanted);
}

static void words_go_on_below_and_none_is_lost(void **state)
{
    (void)state;
    assert_wrapped("one two three", 99, "one two three\n");
    assert_wrapped("one two three", 10, "one two\n    three\n");
    assert_wrapped("one\ntwo", 99, "one\n    two\n");
    assert_wrapped("much_too_long_a_word b", 10, "much_too_long_a_word\n    b\n");
    assert_wrapped("a  b", 99, "a  b\n");
    assert_wrapped("", 10, "\n");
}

static void a_cell_has_its_width(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) to = BUF_INIT(4096);
    put_cell(&to, "7bf3903c-dc72", 8);
    put_cell(&to, "", 2);
    put_cell(&to, "ab", 3);
    assert_string_equal(to.ptr, "7bf3903c -  ab  ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_line_controls_become_blanks),
        cmocka_unit_test(what_turns_the_direction_and_a_byte_that_is_no_utf8_become_blanks),
        cmocka_unit_test(in_a_text_controls_are_written_out_and_lines_stay),
        cmocka_unit_test(a_line_is_cut_to_the_width_by_characters_and_keeps_its_colours),
        cmocka_unit_test(words_go_on_below_and_none_is_lost),
        cmocka_unit_test(a_cell_has_its_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
