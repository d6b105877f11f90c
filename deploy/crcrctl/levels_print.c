/* The report of `crcrctl levels` as text and as JSON. PURE. */
#include <inttypes.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_text.h"
#include "../../common/model/ids.h"
#include "levels_report.h"

/* ---- text --------------------------------------------------------------------------------------
 */

static void put_day(struct buf *to, int64_t ms)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format(ms, text);
    buf_printf(to, "%.10s", text);
}

static void put_criterion(struct buf *to, const struct level_criterion *c)
{
    struct buf CLEANUP(buf_clear) value;
    buf_init(&value, 64);
    if (c->known)
        level_value(&value, c->unit, c->value);
    else
        buf_puts(&value, "not known");
    buf_printf(to, "    %-6s %-11s %-14.*s", c->ok ? "ok" : "NOT OK", c->name,
               STR_ARG(buf_str(&value)));
    buf_puts(to, c->at_least ? " at least " : " below ");
    level_value(to, c->unit, c->limit);
    if (*c->of)
        buf_printf(to, ", over %zu %s", c->over, c->of);
    buf_putc(to, '\n');
}

static const char *state_text(const char *state)
{
    static const char *const texts[][2] = {
        { "ready", "ready for L3" },
        { "not_ready", "not ready" },
        { "good", "good" },
        { "bad", "not good enough for L3" },
        { "no_jobs", "no jobs in that time" },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (str_is(str_of(state), texts[i][0]))
            return texts[i][1];
    return state;
}

static void put_row(struct buf *to, const struct levels_row *row)
{
    bool of_l4 = row->entry->level == 4 && str_is(str_of(row->state), "bad");
    buf_printf(to, "  %.*s  %s", STR_ARG(row->entry->repo),
               of_l4 ? "below what L3 asks; L4 is decided by people" : state_text(row->state));
    if (row->since_ms >= 0) {
        buf_printf(to, ", %s since ", level_name(row->entry->level));
        put_day(to, row->since_ms);
    }
    if (row->demotion) {
        buf_puts(to, ", demoted since ");
        put_day(to, row->demotion->since_ms);
    }
    buf_putc(to, '\n');
    for (size_t i = 0; i < row->verdict.n; i++)
        put_criterion(to, &row->verdict.at[i]);
}

static void put_level(struct buf *to, const struct levels_report *r, int level, const char *title,
                      int64_t window_ms)
{
    size_t n = 0;
    buf_printf(to, "\n%s, jobs that ended in the last ", title);
    level_value(to, UNIT_MS, (double)window_ms);
    buf_putc(to, '\n');
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].entry->level == level) {
            put_row(to, &r->rows[i]);
            n++;
        }
    if (n == 0)
        buf_puts(to, "  none\n");
}

static void put_patch(struct buf *to, const struct levels_report *r)
{
    if (r->patch.len == 0) {
        buf_puts(to, "\nNobody is to be moved.\n");
        return;
    }
    buf_puts(to, "\nPatch of the allowlist (crcrctl levels --patch | git apply):\n");
    if (r->rewritten)
        buf_puts(to, "It writes the file anew, without its comments: not every repository stands "
                     "on a line of its own.\n");
    if (str_find_str(buf_str(&r->patch), STR_LIT(LEVELS_NO_DEVICE)) >= 0)
        buf_puts(to, "Say the device of who is ready with --device OWNER/REPO=DEVICE.\n");
    buf_putc(to, '\n');
    buf_put(to, buf_str(&r->patch));
}

void levels_report_text(const struct levels_report *r, struct buf *to)
{
    const struct levels_input *in = r->input;
    char fetched[CLOCK_TEXT_SIZE];
    clock_format(in->fetched_ms, fetched);
    buf_printf(to, "Allowlist %.10s from %s, fetched %s\n", in->sha, in->source, fetched);
    put_level(to, r, 2, "Ready for L3?", in->rules.ready_window_ms);
    put_level(to, r, 3, "To stay at L3?", in->rules.demote_window_ms);
    put_level(to, r, 4, "L4", in->rules.demote_window_ms);
    put_patch(to, r);
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static void json_name(struct buf *to, const char *name)
{
    char last = to->ptr[to->len - 1];
    buf_printf(to, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

static void json_time(struct buf *to, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT_SIZE];
    json_name(to, name);
    if (ms >= 0)
        clock_format(ms, text);
    json_text_put(to, ms >= 0 ? str_of(text) : STR_NONE);
}

static void json_str(struct buf *to, const char *name, struct str text)
{
    json_name(to, name);
    json_text_put(to, text);
}

/* Percent as percent, times in seconds. */
static double shown(const struct level_criterion *c, double value)
{
    return c->unit == UNIT_PERCENT ? value : value / 1000;
}

static void json_criterion(struct buf *to, const struct level_criterion *c)
{
    buf_puts(to, to->ptr[to->len - 1] == '[' ? "{" : ",{");
    json_str(to, "name", str_of(c->name));
    json_name(to, "value");
    if (c->known)
        buf_printf(to, "%.3f", shown(c, c->value));
    else
        buf_puts(to, "null");
    json_str(to, "unit", str_of(c->unit == UNIT_PERCENT ? "percent" : "seconds"));
    json_str(to, "wanted", str_of(c->at_least ? ">=" : "<"));
    json_name(to, "threshold");
    buf_printf(to, "%.3f", shown(c, c->limit));
    json_name(to, "ok");
    buf_puts(to, c->ok ? "true" : "false");
    json_name(to, "over");
    buf_printf(to, "%zu", c->over);
    json_str(to, "of", *c->of ? str_of(c->of) : STR_NONE);
    buf_putc(to, '}');
}

static void json_row(struct buf *to, const struct levels_row *row)
{
    buf_puts(to, to->ptr[to->len - 1] == '[' ? "{" : ",{");
    json_str(to, "repo", row->entry->repo);
    json_str(to, "level", str_of(level_name(row->entry->level)));
    json_time(to, "level_since", row->since_ms);
    json_str(to, "state", str_of(row->state));
    json_time(to, "demoted_since", row->demotion ? row->demotion->since_ms : -1);
    json_name(to, "criteria");
    buf_putc(to, '[');
    for (size_t i = 0; i < row->verdict.n; i++)
        json_criterion(to, &row->verdict.at[i]);
    buf_puts(to, "]}");
}

void levels_report_json(const struct levels_report *r, struct buf *to)
{
    const struct levels_input *in = r->input;
    buf_putc(to, '{');
    json_time(to, "at", in->now_ms);
    json_name(to, "allowlist");
    buf_putc(to, '{');
    json_str(to, "sha", str_of(in->sha));
    json_str(to, "source", str_of(in->source));
    json_time(to, "fetched_at", in->fetched_ms);
    buf_putc(to, '}');
    json_name(to, "ready_window_seconds");
    buf_printf(to, "%" PRId64, in->rules.ready_window_ms / 1000);
    json_name(to, "demote_window_seconds");
    buf_printf(to, "%" PRId64, in->rules.demote_window_ms / 1000);
    json_name(to, "repos");
    buf_putc(to, '[');
    for (size_t i = 0; i < r->n; i++)
        json_row(to, &r->rows[i]);
    buf_putc(to, ']');
    json_str(to, "patch", buf_str(&r->patch));
    json_name(to, "patch_rewrites_file");
    buf_puts(to, r->rewritten ? "true}\n" : "false}\n");
}
