#include "summary.h"

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/view/indexes.h"
#include "../../common/view/pull_requests.h"
#include "../aggregate.h"
#include "api.h"
#include "paths.h"

#define SUMMARY_REPOS 500

enum err summary_repo_put(const struct web_view *w, const struct allowlist_version *version,
                          struct str repo, const struct job_list *jobs, struct window *window,
                          struct buf *to, struct why *why)
{
    const struct allowlist_entry *entry = allowlist_find(version->list, repo);
    struct demotions *demoting = NULL;
    enum err err = window_read(w->redis, repo, window, why);
    if (!err)
        err = prs_demoting_get(w->redis, &demoting, why);
    if (!err) {
        /* L1 reports nothing. */
        int64_t silent_ms = entry && entry->level < 2 ? 0 : w->reporter->times.overdue_ms;
        api_put_repo(to, repo, entry, demotion_in_force(version, demoting, repo), jobs->at, jobs->n,
                     window);
        to->len--; /* its last bracket */
        pipeline_dispatches_put(w->pipeline, repo, jobs->n ? jobs->at[0].last_ms : 0, silent_ms,
                                to);
        buf_putc(to, '}');
    }
    demotions_free(demoting);
    return err;
}

static bool is_indexed(const struct view_index *active, struct str repo)
{
    for (size_t i = 0; i < active->n; i++)
        if (str_eq_nocase(str_of(active->at[i].name), repo))
            return true;
    return false;
}

/* Those that did something last come first, then those that are only listed. One that is neither
 * listed nor has jobs any more is left out: nothing takes it off the index. */
static enum err repos_put(const struct web_view *w, const struct allowlist_version *version,
                          struct window *window, struct buf *to, struct why *why)
{
    static const struct job_list none = { NULL, 0 };
    struct view_index CLEANUP(view_index_clear) active = { NULL, 0 };
    size_t n = allowlist_size(version->list), shown = 0;
    enum err err = repos_by_activity(w->redis, SUMMARY_REPOS, &active, why);
    for (size_t i = 0; !err && i < active.n; i++) {
        struct str repo = str_of(active.at[i].name);
        struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
        err = jobs_of_repo(w->redis, repo, false, RUN_JOBS, &jobs, why);
        if (err || (jobs.n == 0 && !allowlist_find(version->list, repo)))
            continue;
        jobs_mark_replaced(jobs.at, jobs.n);
        err = summary_repo_put(w, version, repo, &jobs, window, to, why);
        shown++;
    }
    for (size_t i = 0; !err && i < n && shown < SUMMARY_REPOS; i++) {
        struct str repo = allowlist_at(version->list, i)->repo;
        if (is_indexed(&active, repo))
            continue;
        err = summary_repo_put(w, version, repo, &none, window, to, why);
        shown++;
    }
    return err;
}

enum err summary_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                      bool *known, struct why *why)
{
    char error[ALLOWLIST_NOTE_MAX];
    struct window CLEANUP(window_clear)
        window = { .days = path_number(ask->params[0]), .now_ms = clock_wall_ms() };
    enum err err = allowlist_note_error(w->redis, error, why);
    *known = true;
    if (err)
        return err;
    bool caught_up = allowlist_feed_caught_up(w->reporter->feed); /* before: what follows is so */
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    buf_putc(to, '{');
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    buf_puts(to, ",\"allowlist\":{");
    json_put_bool(to, "caught_up", caught_up);
    json_put_text(to, "sha", *version->sha ? str_of(version->sha) : STR_NONE);
    json_put_text(to, "source", *version->source ? str_of(version->source) : STR_NONE);
    json_put_time(to, "fetched_at", version->fetched_ms);
    json_put_text(to, "error", *error ? str_of(error) : STR_NONE);
    buf_puts(to, "},\"repos\":[");
    err = repos_put(w, version, &window, to, why);
    allowlist_feed_release(w->reporter->feed, version);
    buf_puts(to, "]}");
    return err;
}
