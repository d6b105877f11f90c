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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_line_controls_become_blanks),
        cmocka_unit_test(what_turns_the_direction_and_a_byte_that_is_no_utf8_become_blanks),
        cmocka_unit_test(in_a_text_controls_are_written_out_and_lines_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
