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
#include "level.h"
#include "pr_list.h"

#define KEY_MAX_BYTES     1024
#define SUMMARY_REPOS     500
#define SUMMARY_JOBS      100 /* of each downstream; what its pass rate is taken from */
#define REPO_JOBS         200
#define PR_DELIVERIES     25
#define PR_JOBS           400 /* of each delivery */
#define DELIVERY_JOBS     1000
#define DELIVERY_JOBS_MAX 10000 /* with ?limit= */
#define DELIVERY_FULL     100   /* jobs that come with failed tests and verdict */

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

static enum err repo_page_put(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                              bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct str repo = ask->id;
    enum err err = jobs_of_repo(w->redis, repo, REPO_JOBS, &jobs, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    *known = (version->list && allowlist_find(version->list, repo)) || jobs.n > 0;
    buf_puts(to, "{\"downstream\":");
    const struct job_list scored = { jobs.at, jobs.n < SUMMARY_JOBS ? jobs.n : SUMMARY_JOBS };
    repo_put(version, repo, &scored, to);
    allowlist_feed_release(w->reporter->feed, version);
    json_put_name(to, "more_jobs");
    buf_puts(to, jobs.n >= REPO_JOBS ? "true" : "false");
    json_put_name(to, "jobs");
    api_put_jobs(to, jobs.at, jobs.n);
    buf_putc(to, '}');
    return OK;
}

/* limit and full_max as jobs_of_delivery. */
static enum err delivery_put(const struct web_view *w, struct str id, size_t limit, size_t full_max,
                             struct buf *to, bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) jobs = { NULL, 0 };
    struct dispatch_view *dispatches = NULL;
    size_t n = 0;
    enum commit_seen seen = COMMIT_UNKNOWN;
    enum err err = jobs_of_delivery(w->redis, id, limit, full_max, &jobs, why);
    /* A nightly or periodic run names the commit itself, as its delivery. */
    if (!err && jobs.n > 0 && result_record_is_self(&jobs.at[0]) && sha_valid(id))
        err = commit_seen_get(w->redis, id, &seen, why);
    if (!err)
        err = dispatches_of_delivery(w->redis, id, limit, &dispatches, &n, why);
    if (err)
        return err;
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    const struct api_delivery delivery = { .id = id,
                                           .jobs = jobs.at,
                                           .n_jobs = jobs.n,
                                           .dispatches = dispatches,
                                           .n_dispatches = n,
                                           .commit = seen,
                                           .more_jobs = jobs.n >= limit,
                                           .version = version };
    *known = jobs.n + n > 0;
    api_put_delivery(to, &delivery);
    allowlist_feed_release(w->reporter->feed, version);
    free(dispatches);
    return OK;
}

static enum err delivery_page_put(const struct web_view *w, const struct path_ask *ask,
                                  struct buf *to, bool *known, struct why *why)
{
    uint64_t limit;
    if (!str_to_u64(ask->params[0], &limit) || limit == 0)
        limit = DELIVERY_JOBS;
    if (limit > DELIVERY_JOBS_MAX)
        limit = DELIVERY_JOBS_MAX;
    return delivery_put(w, ask->id, limit, DELIVERY_FULL, to, known, why);
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
        err = delivery_put(w, str_of(deliveries.at[i].name), PR_JOBS, 0, to, &ignored, why);
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
    struct pr_query query = { .text = ask->params[0] };
    if (!str_to_i64(ask->params[1], &query.before_ms))
        query.before_ms = 0;
    *known = true;
    return pr_list_put(w->redis, &query, to, why);
}

const struct api_path api_paths[] = {
    { "summary", "/api/crcr/summary", { NULL }, NULL, summary_put },
    { "repo", "/api/crcr/repos/*", { NULL }, repo_valid, repo_page_put },
    { "level", "/api/crcr/repos/*/level", { NULL }, repo_valid, level_page_put },
    { "prs", "/api/crcr/prs", { "q", "before" }, NULL, pr_list_page_put },
    { "pr", "/api/crcr/prs/*", { NULL }, pr_valid, pr_page_put },
    { "delivery", "/api/crcr/deliveries/*", { "limit" }, delivery_valid, delivery_page_put },
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

/* A part of the key, with its length before it, so that no value can look like another part. */
static void key_put(struct buf *key, struct str part)
{
    buf_printf(key, "%zu:", part.len);
    buf_put(key, part);
    buf_putc(key, ',');
}

/* The next one of them. */
static struct str key_take(struct str *rest)
{
    uint64_t len = 0;
    ptrdiff_t colon = str_find(*rest, ':');
    (void)str_to_u64((struct str){ rest->ptr, (size_t)colon }, &len);
    struct str part = { rest->ptr + colon + 1, len };
    *rest = str_from(*rest, (size_t)colon + 1 + len + 1);
    return part;
}

static bool ask_make(struct path_ask *ret, const struct api_path *path, struct str id,
                     const struct headers *query)
{
    struct buf CLEANUP(buf_clear) key;
    buf_init(&key, KEY_MAX_BYTES);
    buf_puts(&key, path->path);
    buf_putc(&key, ' ');
    key_put(&key, id);
    for (size_t i = 0; i < PATH_PARAMS_MAX; i++) {
        struct str value = path->params[i] ? headers_get(query, path->params[i]) : STR_NONE;
        if (value.ptr)
            key_put(&key, value);
        else
            buf_putc(&key, '-');
    }
    if (buf_full(&key))
        return false;
    *ret = (struct path_ask){ .path = path };
    ret->key.ptr = buf_take(&key, &ret->key.len);
    struct str rest = str_from(ret->key, strlen(path->path) + 1);
    ret->id = key_take(&rest);
    for (size_t i = 0; i < PATH_PARAMS_MAX; i++) {
        if (str_starts(rest, "-"))
            rest = str_from(rest, 1);
        else
            ret->params[i] = key_take(&rest);
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
    if (!known)
        return detail(to, 404, "nothing is known of this");
    return buf_full(to) ? detail(to, 503, "the answer is too large") : 200;
}
