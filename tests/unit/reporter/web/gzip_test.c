#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "reporter/web/gzip.h"
#include "reporter/web/web_files.h"

static void what_was_packed_is_unpacked(void **state)
{
    (void)state;
    for (size_t len = 0; len < 3000000; len = len * 7 + 1) {
        char *text = mem_alloc(len + 1, 1);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)(i * i >> 7);
        struct str packed = gzip_pack((struct str){ text, len }), body = gzip_unpack(packed);
        assert_true(str_starts(packed, "\x1f\x8b"));
        assert_int_equal(body.len, len);
        assert_memory_equal(body.ptr, text, len);
        free(text);
        free((char *)(uintptr_t)packed.ptr);
        free((char *)(uintptr_t)body.ptr);
    }
}

static void what_the_build_packed_is_unpacked(void **state)
{
    (void)state;
    size_t n = 0;
    for (; web_files[n].name; n++) {
        struct str body = gzip_unpack(web_files[n].gzip);
        assert_true(body.len > web_files[n].gzip.len);
        if (str_is(str_of(web_files[n].name), "/index.html"))
            assert_true(str_starts(body, "<!doctype html>"));
        free((char *)(uintptr_t)body.ptr);
    }
    assert_true(n >= 5);
}

static void who_says_so_gets_gzip(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool accepted;
    } cases[] = {
        { "gzip", true },
        { "gzip, deflate, br, zstd", true },
        { "br;q=1.0, GZIP;q=0.001", true },
        { "deflate,gzip ; q=0.5", true },
        { "x-gzip", true },
        { "*", true },
        { "br, *;q=0.1", true },
        { "gzip, *;q=0", true },
        { NULL, false },
        { "", false },
        { "identity", false },
        { "br, deflate", false },
        { "gzip;q=0", false },
        { "gzip ; Q=0.000 , deflate", false },
        { "*;q=0", false },
        { "gzip;q=0, *", false },
        { "*, gzip;q=0.0", false },
        { "gzipped", false },
        { ",,;;,;q=1", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (gzip_accepted(str_of(cases[i].header)) != cases[i].accepted)
            fail_msg("\"%s\" is taken wrongly", cases[i].header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_unpacked),
        cmocka_unit_test(what_the_build_packed_is_unpacked),
        cmocka_unit_test(who_says_so_gets_gzip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
