#include "text_lines.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

#define AROUND 3 /* lines of context, as diff -u has them */

void text_lines_clear(struct text_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        free(lines->at[i].text);
    free(lines->at);
    *lines = (struct text_lines){ NULL, 0 };
}

void text_lines_insert(struct text_lines *lines, size_t i, struct str text)
{
    lines->at = mem_resize(lines->at, lines->n + 1, sizeof(*lines->at));
    memmove(lines->at + i + 1, lines->at + i, (lines->n - i) * sizeof(*lines->at));
    lines->at[i] = (struct text_line){ .text = str_dup(text.ptr ? text : STR_LIT("")) };
    lines->n++;
}

void text_lines_remove(struct text_lines *lines, size_t i, size_t n)
{
    for (size_t k = i; k < i + n; k++)
        free(lines->at[k].text);
    memmove(lines->at + i, lines->at + i + n, (lines->n - i - n) * sizeof(*lines->at));
    lines->n -= n;
}

static bool ends_whole(struct str text)
{
    return text.len == 0 || str_ends(text, "\n");
}

void text_lines_read(struct text_lines *to, struct str text)
{
    for (struct str rest = text; rest.len > 0;) {
        ptrdiff_t newline = str_find(rest, '\n');
        size_t len = newline < 0 ? rest.len : (size_t)newline;
        text_lines_insert(to, to->n, (struct str){ rest.ptr, len });
        to->at[to->n - 1].old = to->n;
        rest = str_from(rest, len + 1);
    }
    if (!ends_whole(text)) /* it gets its newline, which is a change too */
        to->at[to->n - 1].old = 0;
}

void text_lines_put(const struct text_lines *lines, struct buf *to)
{
    for (size_t i = 0; i < lines->n; i++) {
        buf_puts(to, lines->at[i].text);
        buf_putc(to, '\n');
    }
}

/* ---- the diff ---------------------------------------------------------------------------------
 */

/* One line of the diff: ' ' both have it, '-' only the old text, '+' only the new one. */
struct change {
    char mark;
    const char *text;
    size_t old, new; /* how many lines of each stand before it */
};

struct changes {
    struct change *at;
    size_t n;
};

static void change_add(struct changes *c, char mark, const char *text, size_t *old, size_t *new)
{
    c->at[c->n++] = (struct change){ mark, text, *old, *new };
    *old += mark != '+';
    *new += mark != '-';
}

/* The number of the next line from i on that stayed. */
static size_t next_old(const struct text_lines *is, size_t i, size_t none)
{
    while (i < is->n && is->at[i].old == 0)
        i++;
    return i < is->n ? is->at[i].old : none;
}

/* Lines that stayed are in their old order, so one walk over both is enough. */
static void compare(struct changes *c, const struct text_lines *was, const struct text_lines *is)
{
    size_t old = 0, new = 0;
    c->at = mem_alloc(was->n + is->n + 1, sizeof(*c->at));
    for (size_t i = 0; i < is->n; i++) {
        while (old + 1 < next_old(is, i, was->n + 1))
            change_add(c, '-', was->at[old].text, &old, &new);
        change_add(c, is->at[i].old > 0 ? ' ' : '+', is->at[i].text, &old, &new);
    }
    while (old < was->n)
        change_add(c, '-', was->at[old].text, &old, &new);
}

/* The end of the hunk that begins at first: after it, more than twice AROUND lines are equal. */
static size_t hunk_end(const struct changes *c, size_t first)
{
    size_t end = first, equal = 0;
    for (size_t i = first; i < c->n && equal <= 2 * AROUND; i++) {
        equal = c->at[i].mark == ' ' ? equal + 1 : 0;
        if (c->at[i].mark != ' ')
            end = i + 1;
    }
    return end + AROUND < c->n ? end + AROUND : c->n;
}

static void hunk_put(struct buf *to, const struct changes *c, size_t first, size_t end,
                     size_t broken_line)
{
    size_t old = 0, new = 0;
    for (size_t i = first; i < end; i++) {
        old += c->at[i].mark != '+';
        new += c->at[i].mark != '-';
    }
    /* diff counts from 1, but a side without lines is told by the line before it */
    buf_printf(to, "@@ -%zu,%zu +%zu,%zu @@\n", c->at[first].old + (old > 0), old,
               c->at[first].new + (new > 0), new);
    for (size_t i = first; i < end; i++) {
        buf_putc(to, c->at[i].mark);
        buf_puts(to, c->at[i].text);
        buf_putc(to, '\n');
        if (c->at[i].mark == '-' && c->at[i].old + 1 == broken_line)
            buf_puts(to, "\\ No newline at end of file\n");
    }
}

void text_lines_diff(struct str old, const struct text_lines *lines, const char *path,
                     struct buf *to)
{
    struct text_lines CLEANUP(text_lines_clear) was = { NULL, 0 };
    struct changes c = { NULL, 0 };
    text_lines_read(&was, old);
    compare(&c, &was, lines);
    bool told = false;
    for (size_t i = 0; i < c.n;) {
        if (c.at[i].mark == ' ') {
            i++;
            continue;
        }
        if (!told)
            buf_printf(to, "--- a/%s\n+++ b/%s\n", path, path);
        told = true;
        size_t first = i;
        while (first > 0 && i - first < AROUND && c.at[first - 1].mark == ' ')
            first--;
        size_t end = hunk_end(&c, i);
        hunk_put(to, &c, first, end, ends_whole(old) ? 0 : was.n);
        i = end;
    }
    free(c.at);
}
