#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/github/contents.h"

static void a_blob_url_is_read_through_the_contents_api(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "https://github.com/pytorch/pytorch/blob/main/.github/allow%20list.yml",
        "https://github.com/pytorch/pytorch/raw/main/.github/allow%20list.yml?plain=1#L3",
    };
    for (size_t i = 0; i < 2; i++) {
        struct content_source s;
        struct buf path;
        buf_init(&path, 1000);
        assert_int_equal(content_source_parse(&s, str_of(urls[i]), NULL), OK);
        assert_int_equal(s.kind, CONTENT_GITHUB);
        assert_string_equal(s.repo, "pytorch/pytorch");
        content_api_path(&path, &s);
        assert_string_equal(buf_str(&path).ptr,
                            "/repos/pytorch/pytorch/contents/.github/allow%20list.yml?ref=main");
        assert_string_equal(content_name(&s), "allow%20list.yml");
        buf_clear(&path);
    }
}

static void other_urls_and_files_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum content_kind kind;
        const char *name, *shown; /* NULL: as text */
    } table[] = {
        { "https://example.org/a/list.yml", CONTENT_URL, "list.yml", NULL },
        { "http://127.0.0.1:8080/list.yml", CONTENT_URL, "list.yml", NULL },
        { "https://example.org/list.yml?token=hush/hush", CONTENT_URL, "list.yml",
          "https://example.org/list.yml" },
        { "https://github.com/o/r/blob/main/list.yml?token=hush", CONTENT_GITHUB, "list.yml",
          "https://github.com/o/r/blob/main/list.yml" },
        { "/etc/crcr/list.yml", CONTENT_FILE, "list.yml", NULL },
        { "/etc/crcr/list?.yml", CONTENT_FILE, "list?.yml", NULL },
        { "list.yml", CONTENT_FILE, "list.yml", NULL },
        { "file:///etc/list.yml", CONTENT_FILE, "list.yml", "/etc/list.yml" },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct content_source s;
        assert_int_equal(content_source_parse(&s, str_of(table[i].text), NULL), OK);
        assert_int_equal(s.kind, table[i].kind);
        assert_string_equal(content_name(&s), table[i].name);
        assert_string_equal(s.shown, table[i].shown ? table[i].shown : table[i].text);
    }
}

static void what_cannot_be_read_is_refused_with_what_is_accepted(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "https://github.com/pytorch/pytorch",
        "https://github.com/pytorch/pytorch/blob/main",
        "https://github.com/pytorch/pytorch/tree/main/a.yml",
        "https://github.com/py torch/pytorch/blob/main/a.yml",
        "ftp://example.org/a.yml",
        "https://github.com/pytorch/pytorch?hush",
        "ftp://example.org/a.yml?hush",
        "https://user:hush@example.org/a.yml",
        "https://user:hu/sh@example.org/hush",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct content_source s = { .kind = CONTENT_FILE };
        struct why why = { "" };
        assert_int_equal(content_source_parse(&s, str_of(bad[i]), &why), ERR_REFUSE);
        assert_true(why.text[0] != 0);
        assert_null(strstr(why.text, "hush"));
    }
}

struct seen {
    int calls;
    enum err err;
    char body[64];
};

static void fetched(void *opaque, const struct content_answer *answer)
{
    struct seen *seen = opaque;
    seen->calls++;
    seen->err = answer->err;
    str_copy(seen->body, sizeof(seen->body), answer->body);
}

/* In the place of the HTTP client's: what was asked for last, to be answered by hand. */
static struct {
    enum err refuse; /* not even started */
    http_answered_fn *done;
    void *opaque;
    char url[100], etag[20];
} asked;

enum err http_client_start(struct http_client *c, const struct http_request *request,
                           http_answered_fn *done, void *opaque, struct why *why)
{
    (void)c, (void)why;
    asked.done = done;
    asked.opaque = opaque;
    assert_true(str_copy(asked.url, sizeof(asked.url), str_of(request->url)));
    (void)str_copy(asked.etag, sizeof(asked.etag), headers_get(request->headers, "if-none-match"));
    return asked.refuse;
}

static struct content_answer answered;

static void url_fetched(void *opaque, const struct content_answer *answer)
{
    (void)opaque;
    answered = *answer;
}

static void a_url_is_asked_with_its_etag_and_the_status_says_what_follows(void **state)
{
    static const struct {
        struct http_answer answer;
        enum err err;
        bool unchanged;
    } table[] = {
        { { .status = 200 }, OK, false },
        { { .status = 304 }, OK, true },
        { { .status = 404 }, ERR_REFUSE, false },
        { { .status = 429 }, ERR_RETRY, false },
        { { .status = 503 }, ERR_RETRY, false },
        { { .err = ERR_UNKNOWN, .reason = "reset" }, ERR_UNKNOWN, false },
    };
    struct content_source s;
    struct headers headers;
    (void)state;
    headers_init(&headers);
    headers_put(&headers, "ETag", STR_LIT("\"2\""));
    assert_false(content_source_parse(&s, STR_LIT("https://example.org/list.yml"), NULL));
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct http_answer answer = table[i].answer;
        answer.headers = &headers;
        assert_false(content_fetch(&s, NULL, NULL, STR_LIT("\"1\""), 100, url_fetched, NULL, NULL));
        assert_string_equal(asked.url, "https://example.org/list.yml");
        assert_string_equal(asked.etag, "\"1\"");
        asked.done(asked.opaque, &answer);
        assert_int_equal(answered.err, table[i].err);
        assert_int_equal(answered.unchanged, table[i].unchanged);
        assert_true(answered.err ? !!answered.reason : str_is(answered.etag, "\"2\""));
    }
    asked.refuse = ERR_REFUSE;
    assert_int_equal(content_fetch(&s, NULL, NULL, STR_NONE, 100, url_fetched, NULL, NULL),
                     ERR_REFUSE);
}

static void a_file_is_read_whole_and_not_beyond_its_maximum(void **state)
{
    (void)state;
    char path[] = "/tmp/contents_test_XXXXXX";
    struct content_source s;
    struct seen seen = { 0 };
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "L1: []\n", 7), 7);
    close(fd);
    assert_int_equal(content_source_parse(&s, str_of(path), NULL), OK);
    assert_int_equal(content_fetch(&s, NULL, NULL, STR_NONE, 7, fetched, &seen, NULL), OK);
    assert_int_equal(seen.calls, 1);
    assert_string_equal(seen.body, "L1: []\n");
    assert_int_equal(content_fetch(&s, NULL, NULL, STR_NONE, 6, fetched, &seen, NULL), OK);
    assert_int_equal(seen.err, ERR_REFUSE);
    unlink(path);
    assert_int_equal(content_fetch(&s, NULL, NULL, STR_NONE, 6, fetched, &seen, NULL), OK);
    assert_int_equal(seen.err, ERR_RETRY);
    assert_int_equal(seen.calls, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blob_url_is_read_through_the_contents_api),
        cmocka_unit_test(other_urls_and_files_are_told_apart),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_what_is_accepted),
        cmocka_unit_test(a_url_is_asked_with_its_etag_and_the_status_says_what_follows),
        cmocka_unit_test(a_file_is_read_whole_and_not_beyond_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
