/* workflow.failed_tests_detail: an array of {name, classname, message, stacktrace, duration}. */
#include "callback_parts.h"

#define ROWS_MAX      1000
#define ROW_MAX_BYTES (64u << 10) /* escapes make a character up to six times as long */

/* Where a text is cut, in bytes; a duration is a number and is kept as written or not at all. */
static const struct {
    const char *name;
    size_t max_bytes;
} members[FAILED_TEST_MEMBERS] = {
    [FAILED_TEST_NAME] = { "name", 1024 },       [FAILED_TEST_CLASSNAME] = { "classname", 1024 },
    [FAILED_TEST_MESSAGE] = { "message", 1024 }, [FAILED_TEST_STACKTRACE] = { "stacktrace", 4096 },
    [FAILED_TEST_DURATION] = { "duration", 32 },
};

void failed_tests_init(struct failed_tests *t)
{
    buf_init(&t->rows, (size_t)ROWS_MAX * ROW_MAX_BYTES);
    buf_init(&t->row, ROW_MAX_BYTES);
    t->named = false;
    t->n = 0;
    t->left_out = 0;
}

void failed_tests_clear(struct failed_tests *t)
{
    buf_clear(&t->rows);
    buf_clear(&t->row);
}

const char *failed_test_member_name(enum failed_test_member member)
{
    return members[member].name;
}

void failed_tests_member(struct failed_tests *t, enum failed_test_member member,
                         enum json_type type, struct str text)
{
    bool is_number = member == FAILED_TEST_DURATION;
    if (t->n == ROWS_MAX || type != (is_number ? JSON_SCAN_NUMBER : JSON_SCAN_STRING))
        return;
    if (is_number && text.len > members[member].max_bytes)
        return;
    buf_printf(&t->row, "%c\"%s\":", t->row.len ? ',' : '{', members[member].name);
    if (is_number)
        buf_put(&t->row, text);
    else
        json_quote(&t->row, str_cut(text, members[member].max_bytes));
    t->named = t->named || (member == FAILED_TEST_NAME && text.len > 0);
}

/* A row without a name says nothing that anyone could look for. */
void failed_tests_row_end(struct failed_tests *t)
{
    if (t->n < ROWS_MAX && t->named) {
        buf_putc(&t->rows, t->n ? ',' : '[');
        buf_put(&t->rows, buf_str(&t->row));
        buf_putc(&t->rows, '}');
        t->n++;
    } else {
        t->left_out++;
    }
    buf_reset(&t->row);
    t->named = false;
}

char *failed_tests_take(struct failed_tests *t)
{
    size_t len;
    if (t->n == 0)
        return NULL;
    buf_putc(&t->rows, ']');
    return buf_take(&t->rows, &len);
}
