#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/json_put.h"
#include "../../common/base/json_text.h"
#include "../../common/base/mem.h"
#include "../../common/model/ids.h"
#include "../../common/view/epoch.h"
#include "../../common/view/indexes.h"
#include "../../common/view/labels.h"
#include "api.h"
#include "delivery_page.h"
#include "level.h"
#include "pr_list.h"
#include "repo_page.h"
#include "since_page.h"

#define KEY_MAX_BYTES     1024
#define SUMMARY_REPOS     500
#define PR_DELIVERIES     25
#define PR_JOBS           400   /* of each delivery */
#define DELIVERY_JOBS_MAX 10000 /* with ?limit=10000, and no other number: each is a page */
#define PREFIX_MIN        8     /* characters of an id that is not whole */

/* ---- /api/crcr/summary ------------------------------------------------------------------------
 */

static void repo_put(const struct allowlist_version *version, struct str repo,
                     const struct job_list *jobs, struct buf *to)
{
    const struct allowlist_entry *entry =
        version->list ? allowlist_find(version->list, repo) : NULL;
    api_put_repo(to, repo, entry, allowlist_version_demotion(version, repo), jobs->at, jobs->n);
}

static bool is_indexed(const struct view_index *active, struct str repo)
{
    for (size_t i = 0; i < active->n; i++)
        if (str_eq_nocase(str_of(active->at[i].name), repo))
            return true;
    return false;
}

/* Those that did something last come first, then those that are only listed. */
static enum err repos_put(const struct web_view *w, const struct allowlist_version *version,
                          struct buf *to, struct why *why)
{
    static const struct job_list none = { NULL, 0 };
    struct view_index CLEANUP(view_index_clear) active = { NULL, 0 };
    enum err err = repos_by_activity(w->redis, SUMMARY_REPOS, &active, why);
    for (size_t i = 0; !err && i < active.n; i++) {
        struct str repo = str_of(active.at[i].name);
        struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
        err = jobs_of_repo(w->redis, repo, SUMMARY_JOBS, &jobs, why);
        if (!err)
            repo_put(version, repo, &jobs, to);
    }
    size_t n = version->list ? allowlist_size(version->list) : 0;
    for (size_t i = 0; !err && i < n && active.n + i < SUMMARY_REPOS; i++) {
        struct str repo = allowlist_at(version->list, i)->repo;
        if (!is_indexed(&active, repo))
            repo_put(version, repo, &none, to);
    }
    return err;
}

static enum err summary_put(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                            bool *known, struct why *why)
{
    char error[ALLOWLIST_NOTE_MAX];
    (void)ask;
    *known = true;
    enum err err = allowlist_note_error(w->redis, error, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    buf_putc(to, '{');
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    buf_puts(to, ",\"allowlist\":{");
    json_put_text(to, "sha", *version->sha ? str_of(version->sha) : STR_NONE);
    json_put_text(to, "source", *version->source ? str_of(version->source) : STR_NONE);
    json_put_time(to, "fetched_at", version->fetched_ms);
    json_put_text(to, "error", *error ? str_of(error) : STR_NONE);
    buf_puts(to, "},\"repos\":[");
    err = repos_put(w, version, to, why);
    allowlist_feed_release(w->reporter->feed, version);
    buf_puts(to, "]}");
    return err;
}

/* ---- one downstream, one delivery, one pull request -------------------------------------------
 */

static enum err repo_put_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                              bool *known, struct why *why)
{
    struct repo_query query = { .repo = ask->id };
    if (!str_to_i64(ask->params[0], &query.before_ms))
        query.before_ms = 0;
    return repo_page_put(w->redis, w->reporter->feed, &query, to, known, why);
}

static enum err badge_put_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                               bool *known, struct why *why)
{
    return badge_page_put(w->redis, w->reporter->feed, ask->id, to, known, why);
}

static enum err since_put_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                               bool *known, struct why *why)
{
    return since_put(w->redis, ask->id, w->reporter->upstream_repo, to, known, why);
}

static enum err delivery_page_put(const struct web_view *w, const struct path_ask *ask,
                                  struct buf *to, bool *known, struct why *why)
{
    size_t limit = str_is(ask->params[0], "10000") ? DELIVERY_JOBS_MAX : DELIVERY_JOBS;
    enum err err =
        delivery_put(w->redis, w->reporter, ask->id, limit, DELIVERY_FULL, to, known, why);
    if (err || *known || ask->id.len < PREFIX_MIN)
        return err;
    buf_reset(to);
    return delivery_prefix_put(w->redis, w->reporter, ask->id, to, known, why);
}

/* 0: it is none. */
static int64_t pr_number(struct str id)
{
    uint64_t pr;
    return str_to_u64(id, &pr) && pr <= INT32_MAX ? (int64_t)pr : 0;
}

static bool pr_valid(struct str id)
{
    return pr_number(id) > 0;
}

static enum err pr_page_put(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                            bool *known, struct why *why)
{
    struct view_index CLEANUP(view_index_clear) deliveries = { NULL, 0 };
    struct buf CLEANUP(buf_clear) labels;
    int64_t pr = pr_number(ask->id);
    buf_init(&labels, 8192);
    enum err err = deliveries_of_pr(w->redis, pr, PR_DELIVERIES, &deliveries, why);
    if (!err)
        err = labels_get(w->redis, pr, &labels, why);
    if (err)
        return err;
    struct str rest = buf_str(&labels), line;
    *known = deliveries.n > 0;
    buf_putc(to, '{');
    json_put_number(to, "pr_number", pr);
    json_put_text(to, "upstream_repo", str_of(w->reporter->upstream_repo));
    buf_puts(to, ",\"labels\":[");
    while (str_split(&rest, '\n', &line)) {
        json_put_comma(to);
        json_text_put(to, line);
    }
    buf_puts(to, "],\"deliveries\":[");
    for (size_t i = 0; !err && i < deliveries.n; i++) {
        bool ignored;
        err = delivery_put(w->redis, w->reporter, str_of(deliveries.at[i].name), PR_JOBS, 0, to,
                           &ignored, why);
    }
    buf_puts(to, "]}");
    return err;
}

static enum err level_page_put(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                               bool *known, struct why *why)
{
    return level_put(w->redis, w->reporter->feed, ask->id, clock_wall_ms(), to, known, why);
}

static enum err pr_list_page_put(const struct web_view *w, const struct path_ask *ask,
                                 struct buf *to, bool *known, struct why *why)
{
    const struct pr_query query = { .text = ask->params[0],
                                    .state = ask->params[1],
                                    .before = ask->params[2] };
    *known = true;
    return pr_list_put(w->redis, &query, to, why);
}

const struct api_path api_paths[] = {
    { "summary", "/api/crcr/summary", { NULL }, NULL, summary_put },
    { "repo", "/api/crcr/repos/*", { "before" }, repo_valid, repo_put_page },
    { "since", "/api/crcr/repos/*/since", { NULL }, repo_valid, since_put_page },
    { "level", "/api/crcr/repos/*/level", { NULL }, repo_valid, level_page_put },
    { "prs", "/api/crcr/prs", { "q", "state", "before" }, NULL, pr_list_page_put },
    { "pr", "/api/crcr/prs/*", { NULL }, pr_valid, pr_page_put },
    { "delivery", "/api/crcr/deliveries/*", { "limit" }, delivery_valid, delivery_page_put },
    { "badge", "/repo/*/badge.svg", { NULL }, repo_valid, badge_put_page, SVG_TYPE },
};
const size_t api_paths_n = sizeof(api_paths) / sizeof(api_paths[0]);

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool path_matches(const struct api_path *path, struct str given, struct str *id)
{
    struct str pattern = str_of(path->path);
    ptrdiff_t star = str_find(pattern, '*');
    if (star < 0)
        return str_eq(pattern, given);
    size_t head = (size_t)star, tail = pattern.len - head - 1;
    if (given.len < head + tail || memcmp(given.ptr, pattern.ptr, head) != 0 ||
        memcmp(given.ptr + given.len - tail, pattern.ptr + head + 1, tail) != 0)
        return false;
    *id = (struct str){ given.ptr + head, given.len - head - tail };
    return path->valid(*id);
}

/* The key is the path's name and a line for each part, so no part may hold a line break. */
static bool ask_make(struct path_ask *ret, const struct api_path *path, struct str id,
                     const struct headers *query)
{
    struct buf CLEANUP(buf_clear) key;
    struct str parts[1 + PATH_PARAMS_MAX] = { id };
    buf_init(&key, KEY_MAX_BYTES);
    buf_puts(&key, path->name);
    for (size_t i = 0; i <= PATH_PARAMS_MAX; i++) {
        if (i > 0 && path->params[i - 1])
            parts[i] = headers_get(query, path->params[i - 1]);
        if (str_find(parts[i], '\n') >= 0)
            return false;
        buf_putc(&key, '\n');
        buf_put(&key, parts[i]);
    }
    if (buf_full(&key))
        return false;
    *ret = (struct path_ask){ .path = path };
    ret->key.ptr = buf_take(&key, &ret->key.len);
    const char *at = ret->key.ptr + strlen(path->name);
    for (size_t i = 0; i <= PATH_PARAMS_MAX; i++) {
        *(i ? &ret->params[i - 1] : &ret->id) = (struct str){ at + 1, parts[i].len };
        at += 1 + parts[i].len;
    }
    return true;
}

bool path_ask_init(struct path_ask *ret, struct str path, const struct headers *query)
{
    for (size_t i = 0; i < api_paths_n; i++) {
        struct str id = STR_LIT("");
        if (path_matches(&api_paths[i], path, &id))
            return ask_make(ret, &api_paths[i], id, query);
    }
    return false;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Percent-decodes into *at, and moves that on. A plus is a blank only in a query. */
static struct str decode(struct str from, bool query, char **at)
{
    struct str to = { *at, 0 };
    for (size_t i = 0; i < from.len; i++, to.len++) {
        char c = from.ptr[i];
        int high = c == '%' && i + 2 < from.len ? hex(from.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex(from.ptr[i + 2]) : -1;
        if (low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && query)
            c = ' ';
        (*at)[to.len] = c;
    }
    *at += to.len;
    return to;
}

bool path_ask_parse(struct path_ask *ret, struct str target)
{
    char text[KEY_MAX_BYTES * 3], *at = text;
    struct headers query;
    struct str path, part;
    headers_init(&query);
    if (target.len > sizeof(text) || !str_split(&target, '?', &path))
        return false;
    path = decode(path, false, &at);
    while (str_split(&target, '&', &part)) {
        struct str name = STR_LIT("");
        (void)str_split(&part, '=', &name);
        name = decode(name, true, &at);
        headers_put_str(&query, name, decode(part, true, &at));
    }
    return path_ask_init(ret, path, &query);
}

void path_ask_clear(struct path_ask *ask)
{
    free((char *)(uintptr_t)ask->key.ptr);
    *ask = (struct path_ask){ .path = NULL };
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int detail(struct buf *to, int status, const char *text)
{
    buf_reset(to);
    buf_printf(to, "{\"detail\":\"%s\"}", text);
    return status;
}

int path_render(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                struct why *why)
{
    int64_t epoch = 0;
    bool known = false;
    *why = (struct why){ "" };
    enum err err = view_epoch_get(w->redis, &epoch, why);
    if (!err && epoch == 0) /* it lacks what it will show again */
        return detail(to, 503, "the view is being rebuilt, try again");
    if (!err)
        err = ask->path->put(w, ask, to, &known, why);
    if (err)
        return detail(to, 503, "the view is unavailable, try again");
    if (!known && ask->path->type) /* an image says it itself */
        return 404;
    if (!known)
        return detail(to, 404, "nothing is known of this");
    return buf_full(to) ? detail(to, 503, "the answer is too large") : 200;
}
