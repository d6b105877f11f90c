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
#include "../../common/view/pull_requests.h"
#include "api.h"
#include "delivery_page.h"
#include "level.h"
#include "pr_list.h"
#include "repo_page.h"
#include "since_page.h"
#include "summary.h"
#include "trends.h"

#define KEY_MAX_BYTES     1024
#define PR_DELIVERIES     25
#define PR_JOBS           400   /* of each delivery */
#define DELIVERY_JOBS_MAX 10000 /* with ?limit=10000, and no other number: each is a page */
#define PREFIX_MIN        8     /* characters of an id that is not whole */

/* ---- all downstreams --------------------------------------------------------------------------
 */

static const char *summary_fault(const struct path_ask *ask)
{
    return window_days(ask->params[0]) ? NULL : "days must be 1, 7 or 30";
}

static enum err summary_put_page(const struct web_view *w, const struct path_ask *ask,
                                 struct buf *to, bool *known, struct why *why)
{
    *known = true;
    return summary_put(w->redis, w->reporter, window_days(ask->params[0]), clock_wall_ms(), to,
                       why);
}

static const char *trends_fault(const struct path_ask *ask)
{
    return trends_days(ask->params[0]) ? NULL : "days must be from 7 to 90";
}

static enum err trends_put_all_page(const struct web_view *w, const struct path_ask *ask,
                                    struct buf *to, bool *known, struct why *why)
{
    const struct allowlist_version *version = allowlist_feed_get(w->reporter->feed);
    *known = true;
    enum err err = trends_put_all(w->redis, version->list, trends_days(ask->params[0]),
                                  clock_wall_ms(), to, why);
    allowlist_feed_release(w->reporter->feed, version);
    return err;
}

static enum err trends_put_page(const struct web_view *w, const struct path_ask *ask,
                                struct buf *to, bool *known, struct why *why)
{
    struct job_list CLEANUP(job_list_clear) newest = { NULL, 0 };
    enum err err = jobs_of_repo(w->redis, ask->id, 1, &newest, why);
    *known = newest.n > 0;
    return err ? err
               : trends_put(w->redis, ask->id, trends_days(ask->params[0]), clock_wall_ms(), to,
                            why);
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
        err = pr_field_get(w->redis, pr, "labels", &labels, why);
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

/* What was seen last of the relay itself: neither Kafka nor Redis is asked. */
static enum err pipeline_put_page(const struct web_view *w, const struct path_ask *ask,
                                  struct buf *to, bool *known, struct why *why)
{
    pipeline_get(w->pipeline, strcmp(ask->path->name, "health") == 0, to);
    *known = true;
    return to->len ? OK : why_set(why, ERR_RETRY, "the relay was not looked at yet");
}

const struct api_path api_paths[] = {
    { .name = "summary",
      .path = "/api/crcr/summary",
      .params = { "days" },
      .fault = summary_fault,
      .put = summary_put_page },
    { .name = "trends",
      .path = "/api/crcr/trends",
      .params = { "days" },
      .fault = trends_fault,
      .put = trends_put_all_page },
    { .name = "repo_trends",
      .path = "/api/crcr/repos/*/trends",
      .params = { "days" },
      .valid = repo_valid,
      .fault = trends_fault,
      .put = trends_put_page },
    { .name = "repo",
      .path = "/api/crcr/repos/*",
      .params = { "before" },
      .valid = repo_valid,
      .put = repo_put_page },
    { .name = "since",
      .path = "/api/crcr/repos/*/since",
      .valid = repo_valid,
      .put = since_put_page },
    { .name = "level",
      .path = "/api/crcr/repos/*/level",
      .valid = repo_valid,
      .put = level_page_put },
    { .name = "prs",
      .path = "/api/crcr/prs",
      .params = { "q", "state", "before" },
      .put = pr_list_page_put },
    { .name = "pr", .path = "/api/crcr/prs/*", .valid = pr_valid, .put = pr_page_put },
    { .name = "delivery",
      .path = "/api/crcr/deliveries/*",
      .params = { "limit" },
      .valid = delivery_valid,
      .put = delivery_page_put },
    { .name = "pipeline", .path = "/api/crcr/pipeline", .put = pipeline_put_page, .no_view = true },
    { .name = "health", .path = "/api/crcr/health", .put = pipeline_put_page, .no_view = true },
    { .name = "badge",
      .path = "/repo/*/badge.svg",
      .valid = repo_valid,
      .put = badge_put_page,
      .type = SVG_TYPE },
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
    const char *fault = ask->path->fault ? ask->path->fault(ask) : NULL;
    if (fault)
        return detail(to, 400, fault);
    enum err err = ask->path->no_view ? OK : view_epoch_get(w->redis, &epoch, why);
    if (!err && !ask->path->no_view && epoch == 0) /* it lacks what it will show again */
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
