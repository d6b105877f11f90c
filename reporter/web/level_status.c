/* How every downstream of the allowlist stands, and whether it should move up or down, under the
 * names of PyTorch's HUD. */
#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/view/pull_requests.h"
#include "level.h"

#define DAY_MS 86400000

/* "89.5 %", with the words before it. */
static void value_put(struct buf *to, const char *name, const char *before,
                      const struct level_criterion *c, double value)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(64);
    buf_puts(&text, before);
    level_value(&text, c->unit, value);
    json_put_text(to, name, buf_str(&text));
}

/* The names are those of PyTorch's HUD, whose tool opens and closes pull requests by them. */
static void status_put(struct buf *to, const struct allowlist_entry *entry,
                       const struct demotion *demotion, const struct level_verdict *verdict,
                       int64_t from_ms)
{
    bool asked = verdict->n > 0, measured = asked && !verdict->no_jobs;
    int proposed = level_proposed(entry->level, verdict);
    const char *change = proposed == 0 ? NULL : proposed > entry->level ? "promote" : "demote";
    json_put_begin(to, NULL, '{');
    json_put_text(to, "repo", entry->repo);
    json_put_string(to, "level", level_name(entry->level));
    json_put_string(to, "change", change);
    json_put_string(to, "demotedReason", demotion ? demotion->reason : NULL);
    json_put_bool(to, "noData", !measured);
    json_put_time(to, "measuredFrom", asked ? from_ms : 0);
    json_put_number(to, "windowDays",
                    asked ? level_window_ms(&level_rules_default, entry->level) / DAY_MS : -1);
    json_put_begin(to, "criteria", '[');
    for (size_t i = 0; i < verdict->n; i++) {
        const struct level_criterion *c = &verdict->at[i];
        json_put_begin(to, NULL, '{');
        json_put_string(to, "criterion", c->name);
        if (c->known)
            value_put(to, "measured", "", c, c->value);
        else
            json_put_string(to, "measured", "–");
        value_put(to, "target", c->at_least ? "at least " : "below ", c, c->limit);
        json_put_name(to, "met");
        buf_puts(to, !c->known || c->shown ? "null" : c->ok ? "true" : "false");
        buf_putc(to, '}');
    }
    buf_puts(to, "]}");
}

enum err level_status_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                           bool *known, struct why *why)
{
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    struct demotions *demoting = NULL;
    enum err err = prs_demoting_get(w->redis, &demoting, why);
    (void)ask;
    *known = true;
    buf_puts(to, "{\"repos\":[");
    for (size_t i = 0; !err && i < allowlist_size(version->list); i++) {
        const struct allowlist_entry *entry = allowlist_at(version->list, i);
        struct level_verdict verdict;
        int64_t from_ms;
        err = level_of_repo(w, entry->repo, entry->level, clock_wall_ms(), &from_ms, &verdict, why);
        if (!err)
            status_put(to, entry, demotion_in_force(version, demoting, entry->repo), &verdict,
                       from_ms);
    }
    buf_puts(to, "]}");
    demotions_free(demoting);
    allowlist_feed_release(w->reporter->feed, version);
    return err;
}
