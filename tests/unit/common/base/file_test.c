#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"

static void a_file_is_appended_and_closed(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(1 << 20);
    struct why why;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    buf_puts(&text, "> ");
    assert_int_equal(file_read(&text, fd, &why), OK);
    assert_memory_equal(text.ptr, "> ", 2);
    assert_true(text.len > 2 && text.ptr[text.len - 1] == '\0');
    assert_int_equal(close(fd), -1);
}

static void what_is_larger_than_the_buffer_may_be_is_refused(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(100000);
    struct why why;
    assert_int_equal(file_read(&text, open("/dev/zero", O_RDONLY | O_CLOEXEC), &why), ERR_REFUSE);
    assert_string_equal(why.text, "more than 100000 bytes");
}

static void what_cannot_be_read_says_why(void **state)
{
    (void)state;
    struct buf CLEANUP(buf_clear) text = BUF_INIT(100);
    struct why why;
    assert_int_equal(file_read(&text, open("/nowhere", O_RDONLY | O_CLOEXEC), &why), ERR_RETRY);
    assert_string_equal(why.text, "No such file or directory");
    assert_int_equal(file_read(&text, open("/", O_RDONLY | O_CLOEXEC), &why), ERR_RETRY);
    assert_string_equal(why.text, "Is a directory");
    assert_int_equal(text.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_appended_and_closed),
        cmocka_unit_test(what_is_larger_than_the_buffer_may_be_is_refused),
        cmocka_unit_test(what_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
