#include "allowlist_patch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/json_text.h"
#include "text_lines.h"

#define FILE_NAME "allowlist"

/* ---- one entry as text ------------------------------------------------------------------------
 */

static bool is_plain(struct str word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool inner = (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (!letter && !(i > 0 && inner))
            return false;
    }
    return word.len > 0 && !str_eq_nocase(word, STR_LIT("null"));
}

/* A JSON string is a YAML string in double quotes. */
static void word_put(struct buf *to, struct str word)
{
    if (is_plain(word))
        buf_put(to, word);
    else
        json_text_put(to, word);
}

static void oncalls_put(struct buf *to, const struct allowlist_entry *e)
{
    buf_putc(to, '[');
    for (size_t i = 0; i < e->n_oncalls; i++) {
        buf_puts(to, i ? ", " : "");
        word_put(to, e->oncalls[i]);
    }
    buf_putc(to, ']');
}

static void details_put(struct buf *to, const struct allowlist_entry *e)
{
    if (e->pull_request && e->nightly) {
        oncalls_put(to, e);
        return;
    }
    buf_printf(to, "{events: [%s]", e->pull_request ? "pull_request" : "nightly");
    if (e->n_oncalls > 0) {
        buf_puts(to, ", oncalls: ");
        oncalls_put(to, e);
    }
    buf_putc(to, '}');
}

/* "- org/a", "- org/a: [x]", or below a device "org/a: []". */
static void entry_put(struct buf *to, const struct allowlist_entry *e, int level, size_t indent)
{
    bool bare = e->pull_request && e->nightly && e->n_oncalls == 0;
    buf_printf(to, "%*s%s%.*s", (int)indent, "", level == 3 ? "" : "- ", STR_ARG(e->repo));
    if (level != 3 && bare)
        return;
    buf_puts(to, ": ");
    details_put(to, e);
}

static void device_put(struct buf *to, struct str device, size_t indent)
{
    buf_printf(to, "%*s", (int)indent, "");
    word_put(to, device);
    buf_putc(to, ':');
}

/* ---- where things stand in the text -----------------------------------------------------------
 */

static struct str line_at(const struct text_lines *lines, size_t i)
{
    return str_of(lines->at[i].text);
}

static size_t indent_of(struct str line)
{
    size_t n = 0;
    while (n < line.len && line.ptr[n] == ' ')
        n++;
    return n;
}

static bool is_blank(struct str line)
{
    struct str text = str_trim(line);
    return text.len == 0 || text.ptr[0] == '#';
}

/* The entry is all that its line holds, but for its details and a comment. */
static bool has_own_line(const struct text_lines *lines, const struct allowlist_entry *e)
{
    struct str line = str_trim(line_at(lines, (size_t)e->line - 1));
    if (e->level != 3) {
        if (!str_starts(line, "- "))
            return false;
        line = str_trim(str_from(line, 2));
    }
    if (line.len < e->repo.len || !str_eq((struct str){ line.ptr, e->repo.len }, e->repo))
        return false;
    line = str_from(line, e->repo.len);
    return line.len == 0 || line.ptr[0] == ':' || line.ptr[0] == ' ';
}

/* How many lines from i on belong to the entry there: what is indented more follows it. */
static size_t entry_lines(const struct text_lines *lines, size_t i)
{
    size_t end = i + 1, indent = indent_of(line_at(lines, i));
    for (size_t k = end;
         k < lines->n && (is_blank(line_at(lines, k)) || indent_of(line_at(lines, k)) > indent);
         k++)
        if (!is_blank(line_at(lines, k)))
            end = k + 1;
    return end - i;
}

/* "L2:" and nothing else but a comment; -1 when there is no such line. */
static ptrdiff_t tier_line(const struct text_lines *lines, int level)
{
    char name[4] = { 'L', (char)('0' + level), ':', '\0' };
    for (size_t i = 0; i < lines->n; i++)
        if (str_starts(line_at(lines, i), name))
            return is_blank(str_from(line_at(lines, i), 3)) ? (ptrdiff_t)i : -1;
    return -1;
}

/* ---- moving lines -----------------------------------------------------------------------------
 */

static void insert(struct text_lines *lines, size_t i, const struct buf *line)
{
    text_lines_insert(lines, i, buf_str(line));
}

/* Below the last entry of the level (and device); -1 when there is none on a line of its own. */
static ptrdiff_t last_entry(const struct text_lines *lines, const struct allowlist *list,
                            const struct allowlist_move *move)
{
    const struct allowlist_entry *last = NULL;
    for (size_t i = 0; i < allowlist_size(list); i++) {
        const struct allowlist_entry *e = allowlist_at(list, i);
        if (e->level == move->level && (e->level != 3 || str_eq_nocase(e->device, move->device)))
            last = e;
    }
    return last && has_own_line(lines, last) ? (ptrdiff_t)last->line - 1 : -1;
}

/* A level (or a device) that has no entry yet. */
static void insert_first(struct text_lines *lines, const struct allowlist_move *move,
                         const struct allowlist_entry *e)
{
    struct buf CLEANUP(buf_clear) line;
    ptrdiff_t tier = tier_line(lines, move->level);
    size_t indent = 2, at = tier < 0 ? lines->n : (size_t)tier + 1;
    buf_init(&line, ALLOWLIST_MAX_BYTES);
    if (tier < 0) {
        buf_printf(&line, "L%d:", move->level);
        insert(lines, at++, &line);
    }
    if (tier >= 0 && at < lines->n && indent_of(line_at(lines, at)) > 0)
        indent = indent_of(line_at(lines, at)); /* as what stands there already */
    if (move->level == 3) {
        buf_reset(&line);
        device_put(&line, move->device, indent);
        insert(lines, at++, &line);
        indent *= 2;
    }
    buf_reset(&line);
    entry_put(&line, e, move->level, indent);
    insert(lines, at, &line);
}

static void insert_entry(struct text_lines *lines, const struct allowlist *list,
                         const struct allowlist_move *move, const struct allowlist_entry *e)
{
    struct buf CLEANUP(buf_clear) line;
    ptrdiff_t last = last_entry(lines, list, move);
    buf_init(&line, ALLOWLIST_MAX_BYTES);
    if (last < 0) {
        insert_first(lines, move, e);
        return;
    }
    entry_put(&line, e, move->level, indent_of(line_at(lines, (size_t)last)));
    insert(lines, (size_t)last + entry_lines(lines, (size_t)last), &line);
}

/* A device whose last repository went goes too. */
static void remove_entry(struct text_lines *lines, size_t i, bool in_device)
{
    size_t indent = indent_of(line_at(lines, i));
    text_lines_remove(lines, i, entry_lines(lines, i));
    if (!in_device || i == 0 || is_blank(line_at(lines, i - 1)) ||
        indent_of(line_at(lines, i - 1)) >= indent)
        return;
    if (i == lines->n || is_blank(line_at(lines, i)) || indent_of(line_at(lines, i)) < indent)
        text_lines_remove(lines, i - 1, 1);
}

/* Does what it can; whether the outcome is right is judged by parsing it. */
static void move_lines(struct text_lines *lines, const struct allowlist *list,
                       const struct allowlist_move *move)
{
    const struct allowlist_entry *e = allowlist_find(list, move->repo);
    const char *line = lines->at[e->line - 1].text;
    if (!has_own_line(lines, e))
        return;
    insert_entry(lines, list, move, e);
    for (size_t i = 0; i < lines->n; i++)
        if (lines->at[i].text == line) { /* it may have gone down */
            remove_entry(lines, i, e->level == 3);
            return;
        }
}

/* ---- the whole file anew ----------------------------------------------------------------------
 */

static const struct allowlist_move *move_of(const struct allowlist_move *moves, size_t n,
                                            struct str repo)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(moves[i].repo, repo))
            return &moves[i];
    return NULL;
}

struct wanted {
    const struct allowlist *list;
    const struct allowlist_move *moves;
    size_t n;
};

static int wanted_level(const struct wanted *w, const struct allowlist_entry *e)
{
    const struct allowlist_move *move = move_of(w->moves, w->n, e->repo);
    return move ? move->level : e->level;
}

static struct str wanted_device(const struct wanted *w, const struct allowlist_entry *e)
{
    const struct allowlist_move *move = move_of(w->moves, w->n, e->repo);
    return !move ? e->device : move->level == 3 ? move->device : STR_NONE;
}

static bool is_first_of_device(const struct wanted *w, size_t i)
{
    struct str device = wanted_device(w, allowlist_at(w->list, i));
    for (size_t k = 0; k < i; k++) {
        const struct allowlist_entry *e = allowlist_at(w->list, k);
        if (wanted_level(w, e) == 3 && str_eq_nocase(wanted_device(w, e), device))
            return false;
    }
    return true;
}

static void level_put(const struct wanted *w, int level, struct str device, struct buf *to)
{
    for (size_t i = 0; i < allowlist_size(w->list); i++) {
        const struct allowlist_entry *e = allowlist_at(w->list, i);
        if (wanted_level(w, e) != level ||
            (level == 3 && !str_eq_nocase(wanted_device(w, e), device)))
            continue;
        entry_put(to, e, level, level == 3 ? 4 : 2);
        buf_putc(to, '\n');
    }
}

static void list_put(const struct wanted *w, struct buf *to)
{
    for (int level = 1; level <= 4; level++) {
        buf_printf(to, "L%d:\n", level);
        if (level != 3) {
            level_put(w, level, STR_NONE, to);
            continue;
        }
        for (size_t i = 0; i < allowlist_size(w->list); i++) {
            const struct allowlist_entry *e = allowlist_at(w->list, i);
            if (wanted_level(w, e) != 3 || !is_first_of_device(w, i))
                continue;
            device_put(to, wanted_device(w, e), 2);
            buf_putc(to, '\n');
            level_put(w, 3, wanted_device(w, e), to);
        }
    }
}

/* ---- is it what was wanted? -------------------------------------------------------------------
 */

static bool same_oncalls(const struct allowlist_entry *a, const struct allowlist_entry *b)
{
    if (a->n_oncalls != b->n_oncalls)
        return false;
    for (size_t i = 0; i < a->n_oncalls; i++)
        if (!str_eq(a->oncalls[i], b->oncalls[i]))
            return false;
    return true;
}

static bool is_wanted(const struct wanted *w, const struct allowlist *made)
{
    if (allowlist_size(made) != allowlist_size(w->list))
        return false;
    for (size_t i = 0; i < allowlist_size(w->list); i++) {
        const struct allowlist_entry *e = allowlist_at(w->list, i);
        const struct allowlist_entry *m = allowlist_find(made, e->repo);
        if (!m || m->level != wanted_level(w, e) ||
            !str_eq_nocase(m->device, wanted_device(w, e)) || m->pull_request != e->pull_request ||
            m->nightly != e->nightly || !same_oncalls(m, e))
            return false;
    }
    return true;
}

/* One move after the other, reading the text anew in between. */
static bool edit(const struct wanted *w, struct str text, struct text_lines *lines)
{
    struct buf CLEANUP(buf_clear) now;
    struct why why;
    bool good = true;
    buf_init(&now, 2 * ALLOWLIST_MAX_BYTES);
    text_lines_read(lines, text);
    for (size_t i = 0; good && i <= w->n; i++) {
        struct allowlist *list;
        buf_reset(&now);
        text_lines_put(lines, &now);
        if (allowlist_parse(&list, FILE_NAME, buf_str(&now), &why))
            return false;
        good = i < w->n ? allowlist_find(list, w->moves[i].repo) != NULL : is_wanted(w, list);
        if (good && i < w->n)
            move_lines(lines, list, &w->moves[i]);
        allowlist_free(list);
    }
    return good;
}

enum err allowlist_patch(struct str text, const char *path, const struct allowlist_move *moves,
                         size_t n, struct buf *to, bool *rewritten, struct why *why)
{
    struct text_lines CLEANUP(text_lines_clear) lines = { NULL, 0 };
    struct wanted w = { .moves = moves, .n = n };
    struct allowlist *list;
    enum err err = allowlist_parse(&list, FILE_NAME, text, why);
    if (err)
        return err;
    w.list = list;
    *rewritten = false;
    for (size_t i = 0; i < n && !err; i++)
        if (!allowlist_find(list, moves[i].repo))
            err = why_set(why, ERR_REFUSE, "%.*s is not on the allowlist", STR_ARG(moves[i].repo));
    bool edited = !err && edit(&w, text, &lines);
    if (!err && !edited) {
        struct buf CLEANUP(buf_clear) anew;
        buf_init(&anew, 2 * ALLOWLIST_MAX_BYTES);
        list_put(&w, &anew);
        text_lines_clear(&lines);
        text_lines_read(&lines, buf_str(&anew));
        for (size_t i = 0; i < lines.n; i++)
            lines.at[i].old = 0;
    }
    if (!err && n > 0) {
        text_lines_diff(text, &lines, path, to);
        *rewritten = !edited;
    }
    allowlist_free(list);
    return err;
}
