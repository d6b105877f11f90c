#include "levels_report.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "../../common/model/allowlist_patch.h"
#include "../../common/model/limits.h"

#define REASON_MAX 1000

/* ---- judging -----------------------------------------------------------------------------------
 */

static const char *state_of(const struct level_verdict *v, int level)
{
    if (v->no_jobs)
        return "no_jobs";
    if (level == 2)
        return v->all_ok ? "ready" : "not_ready";
    return v->all_ok ? "good" : "bad";
}

static void row_judge(struct levels_row *row, const struct levels_input *in,
                      const struct allowlist_entry *entry)
{
    const struct level_rules *rules = &in->rules;
    bool readiness = entry->level == 2;
    int64_t window_ms = readiness ? rules->ready_window_ms : rules->demote_window_ms;
    struct level_figures figures;
    row->entry = entry;
    row->since_ms = tenure_since_ms(in->tenure, entry->repo);
    row->demotion = entry->level == 3 ? demotions_find(in->demotions, entry->repo) : NULL;
    levels_figures(in->jobs, entry->repo, in->now_ms - window_ms, in->now_ms, rules->overrun_ms,
                   &figures);
    if (readiness)
        level_ready(rules, &figures, row->since_ms < 0 ? -1 : in->now_ms - row->since_ms,
                    &row->verdict);
    else
        level_keep(rules, &figures, &row->verdict);
    row->state = state_of(&row->verdict, entry->level);
}

static bool is_promoted(const struct levels_row *row)
{
    return row->entry->level == 2 && row->verdict.all_ok;
}

static bool is_bad(const struct levels_row *row)
{
    return row->entry->level == 3 && !row->verdict.no_jobs && !row->verdict.all_ok;
}

static struct str device_of(const struct levels_input *in, struct str repo)
{
    for (size_t i = 0; i < in->n_devices; i++)
        if (str_eq_nocase(in->devices[i].repo, repo))
            return in->devices[i].device;
    return STR_LIT(LEVELS_NO_DEVICE);
}

static enum err patch_make(struct levels_report *r, struct why *why)
{
    struct allowlist_move *moves = mem_alloc(r->n + 1, sizeof(*moves));
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct str repo = r->rows[i].entry->repo;
        if (is_promoted(&r->rows[i]))
            moves[n++] = (struct allowlist_move){ repo, 3, device_of(r->input, repo) };
        else if (is_bad(&r->rows[i]))
            moves[n++] = (struct allowlist_move){ repo, 2, STR_NONE };
    }
    enum err err =
        allowlist_patch(r->input->text, r->input->path, moves, n, &r->patch, &r->rewritten, why);
    free(moves);
    return err;
}

enum err levels_report_make(struct levels_report *ret, const struct levels_input *input,
                            struct why *why)
{
    struct levels_report r = { .input = input };
    buf_init(&r.patch, 4 * ALLOWLIST_MAX_BYTES);
    r.rows = mem_alloc(allowlist_size(input->list) + 1, sizeof(*r.rows));
    for (int level = 2; level <= 4; level++)
        for (size_t i = 0; i < allowlist_size(input->list); i++)
            if (allowlist_at(input->list, i)->level == level)
                row_judge(&r.rows[r.n++], input, allowlist_at(input->list, i));
    enum err err = patch_make(&r, why);
    if (err == OK)
        *ret = r;
    else
        levels_report_clear(&r);
    return err;
}

void levels_report_clear(struct levels_report *r)
{
    free(r->rows);
    buf_clear(&r->patch);
}

struct demotions *levels_report_demotions(const struct levels_report *r)
{
    struct demotions *d = demotions_new();
    for (size_t i = 0; i < r->n; i++) {
        const struct levels_row *row = &r->rows[i];
        struct buf CLEANUP(buf_clear) reason;
        buf_init(&reason, REASON_MAX);
        if (is_bad(row)) {
            level_reason(&row->verdict, &reason);
            demotions_add(d, row->entry->repo, buf_str(&reason),
                          row->demotion ? row->demotion->since_ms : r->input->now_ms);
        } else if (row->demotion && row->verdict.no_jobs) {
            demotions_add(d, row->entry->repo, str_of(row->demotion->reason),
                          row->demotion->since_ms);
        }
    }
    return d;
}
