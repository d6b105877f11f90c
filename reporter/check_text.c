#include "check_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#define NAME_BYTES    300
#define MESSAGE_BYTES 600
#define STACK_BYTES   1500
#define TAIL_BYTES    10000 /* kept free for what follows the failed tests */

bool url_is_plain(struct str url)
{
    if (!str_starts(url, "https://") && !str_starts(url, "http://"))
        return false;
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '<' || c == '>' || c == '"' || c == '\\' || c == '`' ||
            c == '@')
            return false;
    }
    return true;
}

/* Length of the mark at i that turns the direction of what follows it (U+061C, U+200E, U+200F,
 * U+202A to U+202E, U+2066 to U+2069), or 0: with these a text looks like another one. */
static size_t direction_mark(struct str s, size_t i)
{
    const unsigned char *c = (const unsigned char *)s.ptr + i;
    if (s.len - i >= 2 && c[0] == 0xd8 && c[1] == 0x9c)
        return 2;
    if (s.len - i < 3 || c[0] != 0xe2)
        return 0;
    bool turns =
        (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae))) ||
        (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
    return turns ? 3 : 0;
}

void check_put_code(struct buf *to, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    buf_puts(to, "<code>");
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.ptr[i];
        size_t skip = direction_mark(shown, i);
        if (skip > 0) {
            i += skip - 1;
            continue;
        }
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c >= 0x80 || c == ' ';
        if (plain)
            buf_putc(to, (char)c);
        else if (c < ' ' || c == 0x7f)
            buf_putc(to, ' ');
        else
            buf_printf(to, "&#%d;", c);
    }
    buf_puts(to, shown.len < text.len ? "…</code>" : "</code>");
}

/* ---- title ---------------------------------------------------------------------------------- */

void check_put_capitalised(struct buf *to, const char *name)
{
    for (size_t i = 0; name[i]; i++) {
        char c = name[i] == '_' ? ' ' : name[i];
        buf_putc(to, (char)(i == 0 && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c));
    }
}

void check_put_count(struct buf *to, const char **separator, int64_t n, const char *what)
{
    if (n <= 0)
        return;
    buf_printf(to, "%s%" PRId64 " %s", *separator, n, what);
    *separator = ", ";
}

char *check_title(const struct result_record *job, const char *conclusion)
{
    struct buf title;
    const char *separator = ": ";
    buf_init(&title, 255);
    check_put_capitalised(&title, conclusion ? conclusion : job_state_name(job->state));
    check_put_count(&title, &separator, job->failed, "failed");
    check_put_count(&title, &separator, job->passed, "passed");
    check_put_count(&title, &separator, job->skipped, "skipped");
    return buf_take(&title, NULL);
}

/* ---- summary -------------------------------------------------------------------------------- */

static void put_head(struct buf *to, const struct result_record *job)
{
    check_put_code(to, str_of(job->repo), NAME_BYTES);
    buf_puts(to, " · workflow ");
    check_put_code(to, str_of(job->workflow_name), NAME_BYTES);
    buf_puts(to, " · job ");
    check_put_code(to, str_of(job->job_name), NAME_BYTES);
    buf_puts(to, " · attempt ");
    check_put_code(to, str_of(job->run_attempt), 40);
    if (job->environment) {
        buf_puts(to, " · ");
        check_put_code(to, str_of(job->environment), NAME_BYTES);
    }
    buf_puts(to, "\n");
}

static void put_cell(struct buf *to, int64_t n)
{
    if (n < 0)
        buf_puts(to, " – |");
    else
        buf_printf(to, " %" PRId64 " |", n);
}

static void put_tests(struct buf *to, const struct result_record *job)
{
    if (job->total < 0 && job->passed < 0 && job->failed < 0 && job->skipped < 0)
        return;
    buf_puts(to, "\n| Tests | Passed | Failed | Skipped |\n|---:|---:|---:|---:|\n|");
    put_cell(to, job->total);
    put_cell(to, job->passed);
    put_cell(to, job->failed);
    put_cell(to, job->skipped);
    buf_putc(to, '\n');
}

static void put_seconds(struct buf *to, const char *what, int64_t ms)
{
    if (ms >= 0)
        buf_printf(to, "%s %" PRId64 ".%" PRId64 " s", what, ms / 1000, ms % 1000 / 100);
}

static void put_times(struct buf *to, const struct result_record *job)
{
    if (job->queue_ms < 0 && job->execution_ms < 0)
        return;
    buf_putc(to, '\n');
    put_seconds(to, "Waited", job->queue_ms);
    buf_puts(to, job->queue_ms >= 0 && job->execution_ms >= 0 ? ", " : "");
    put_seconds(to, job->queue_ms >= 0 ? "ran" : "Ran", job->execution_ms);
    buf_puts(to, ".\n");
}

static struct str member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value))
        return STR_NONE;
    return (struct str){ json_string_value(value), json_string_length(value) };
}

static void put_failed_test(struct buf *to, const json_t *row)
{
    struct str class = member(row, "classname"), name = member(row, "name");
    struct str message = member(row, "message"), stack = member(row, "stacktrace");
    buf_puts(to, "- ");
    if (class.len > 0) {
        check_put_code(to, class, NAME_BYTES);
        buf_puts(to, " ");
    }
    check_put_code(to, name, NAME_BYTES);
    if (message.len > 0) {
        buf_puts(to, "<br>");
        check_put_code(to, message, MESSAGE_BYTES);
    }
    if (stack.len > 0) {
        struct str rest = str_cut(stack, STACK_BYTES), line;
        buf_puts(to, "<details><summary>Stack trace</summary>");
        while (str_split(&rest, '\n', &line)) {
            check_put_code(to, line, STACK_BYTES);
            buf_puts(to, "<br>");
        }
        buf_puts(to, "</details>");
    }
    buf_putc(to, '\n');
}

/* As many rows as fit; gives how many did not. */
static int64_t put_rows(struct buf *to, const json_t *rows)
{
    size_t n = json_array_size(rows);
    for (size_t i = 0; i < n; i++) {
        struct buf CLEANUP(buf_clear) row;
        buf_init(&row, CHECK_SUMMARY_MAX);
        put_failed_test(&row, json_array_get(rows, i));
        if (buf_full(&row) || to->len + row.len > CHECK_SUMMARY_MAX - TAIL_BYTES)
            return (int64_t)(n - i);
        buf_put(to, buf_str(&row));
    }
    return 0;
}

static void put_failed_tests(struct buf *to, const struct result_record *job)
{
    if (!job->failed_tests)
        return;
    json_t *rows = json_loads(job->failed_tests, 0, NULL);
    if (json_array_size(rows) > 0) {
        buf_puts(to, "\n### Failed tests\n\n");
        int64_t left = put_rows(to, rows);
        if (job->failed_tests_cut > 0)
            left += job->failed_tests_cut;
        if (left > 0)
            buf_printf(to, "- … and %" PRId64 " more\n", left);
    }
    json_decref(rows);
}

static void put_verdict(struct buf *to, const struct result_record *job)
{
    if (!job->triage_verdict)
        return;
    json_t *verdict = json_loads(job->triage_verdict, 0, NULL);
    struct str category = member(verdict, "category");
    if (category.len > 0) {
        buf_puts(to, "\nThe downstream's own analysis: ");
        check_put_code(to, category, 40);
        buf_puts(to, ", confidence ");
        check_put_code(to, member(verdict, "confidence"), 40);
        buf_puts(to, ". ");
        check_put_code(to, member(verdict, "summary"), MESSAGE_BYTES);
        buf_putc(to, '\n');
    }
    json_decref(verdict);
}

void check_put_link(struct buf *to, const char **separator, const char *what, const char *url)
{
    if (!url || !url_is_plain(str_of(url)))
        return;
    buf_printf(to, "%s[%s](<%s>)", *separator, what, url);
    *separator = " · ";
}

static void put_links(struct buf *to, const struct result_record *job)
{
    const char *separator = "\n";
    check_put_link(to, &separator, "Log", job->run_url);
    check_put_link(to, &separator, "Artifacts", job->artifact_url);
    buf_putc(to, '\n');
}

char *check_summary(const struct result_record *job, const char *marker)
{
    struct buf summary;
    buf_init(&summary, CHECK_SUMMARY_MAX);
    buf_puts(&summary, marker);
    buf_puts(&summary, "\n");
    put_head(&summary, job);
    put_tests(&summary, job);
    put_times(&summary, job);
    put_failed_tests(&summary, job);
    put_verdict(&summary, job);
    put_links(&summary, job);
    return buf_take(&summary, NULL);
}
