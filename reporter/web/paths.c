#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/base/percent.h"
#include "../../common/model/ids.h"
#include "../../common/view/epoch.h"
#include "trends.h"

#define KEY_MAX_BYTES 1024

int64_t pr_number(struct str id)
{
    uint64_t pr;
    return !str_starts(id, "0") && str_to_u64(id, &pr) && pr <= INT32_MAX ? (int64_t)pr : 0;
}

int64_t path_number(struct str param)
{
    int64_t n = 0;
    (void)str_to_i64(param, &n);
    return n;
}

static bool pr_valid(struct str id)
{
    return pr_number(id) > 0;
}

/* What was seen last of the relay itself: neither Kafka nor Redis is asked. */
static enum err pipeline_page(const struct web_view *w, const struct path_ask *ask, struct buf *to,
                              bool *known, struct why *why)
{
    pipeline_get(w->pipeline, strcmp(ask->path->name, "health") == 0, to);
    *known = true;
    return to->len ? OK : why_set(why, ERR_RETRY, "the relay was not looked at yet");
}

/* As many days as there is a choice of on the pages: what is answered is a page in the cache. */
#define WINDOW_DAYS                                                                                \
    {                                                                                              \
        "days", "7|1|30", "days must be 1, 7 or 30"                                                \
    }
#define TRENDS_DAYS                                                                                \
    {                                                                                              \
        "days", "7|30|90", "days must be 7, 30 or 90"                                              \
    }
#define BEFORE(form)                                                                               \
    {                                                                                              \
        "before", "|" form, "before must be as an answer has it"                                   \
    }

static const struct api_path api_paths[] = {
    { .name = "summary",
      .path = "/api/crcr/summary",
      .params = { WINDOW_DAYS },
      .put = summary_page },
    { .name = "trends",
      .path = "/api/crcr/trends",
      .params = { TRENDS_DAYS,
                  { "runs", "pull_requests|pushes|nightly",
                    "runs must be pull_requests, pushes or nightly" } },
      .put = trends_page },
    { .name = "repo_trends",
      .path = "/api/crcr/repos/*/trends",
      .params = { TRENDS_DAYS },
      .valid = repo_valid,
      .put = repo_trends_page },
    { .name = "repo",
      .path = "/api/crcr/repos/*",
      .params = { BEFORE("#") },
      .valid = repo_valid,
      .put = repo_page },
    { .name = "since", .path = "/api/crcr/repos/*/since", .valid = repo_valid, .put = since_page },
    { .name = "level", .path = "/api/crcr/repos/*/level", .valid = repo_valid, .put = level_page },
    { .name = "level_status",
      .path = "/api/crcr/level-status",
      .put = level_status_page,
      .with_list = true },
    { .name = "prs",
      .path = "/api/crcr/prs",
      .params = { { "q", NULL, NULL },
                  { "state", "all|failing|running|passing",
                    "state must be failing, running, passing or all" },
                  BEFORE("#-#"),
                  { "repo", NULL, NULL },
                  { "level", "all|L4|L3|L2|L1", "level must be L1, L2, L3, L4 or all" } },
      .put = prs_page },
    { .name = "pr", .path = "/api/crcr/prs/*", .valid = pr_valid, .put = pr_page },
    { .name = "delivery",
      .path = "/api/crcr/deliveries/*",
      .params = { { "limit", "1000|10000", "limit must be 1000 or 10000" } },
      .valid = delivery_valid,
      .put = delivery_page },
    { .name = "pipeline", .path = "/api/crcr/pipeline", .put = pipeline_page, .no_view = true },
    { .name = "health", .path = "/api/crcr/health", .put = pipeline_page, .no_view = true },
    { .name = "badge",
      .path = "/repo/*/badge.svg",
      .valid = repo_valid,
      .put = badge_page,
      .with_list = true,
      .type = SVG_TYPE },
};
#define API_PATHS (sizeof(api_paths) / sizeof(api_paths[0]))

/* ---- what is asked for ----------------------------------------------------------------------- */

/* One star in pattern stands for an id that valid takes. */
static bool path_matches(const char *pattern, bool (*valid)(struct str id), struct str given,
                         struct str *id)
{
    struct str head, tail = str_of(pattern);
    if (!valid)
        return str_eq(tail, given);
    (void)str_split(&tail, '*', &head);
    if (given.len < head.len + tail.len || memcmp(given.ptr, head.ptr, head.len) != 0 ||
        !str_eq(str_from(given, given.len - tail.len), tail))
        return false;
    *id = (struct str){ given.ptr + head.len, given.len - head.len - tail.len };
    return valid(*id);
}

bool path_is_page(struct str path)
{
    static const struct {
        const char *path;
        bool (*valid)(struct str id);
    } pages[] = {
        { "/", NULL },
        { "/prs", NULL },
        { "/pipeline", NULL },
        { "/metrics-board", NULL },
        { "/pr/*", pr_valid },
        { "/delivery/*", delivery_valid },
        { "/repo/*", repo_valid },
        { "/repo/*/since", repo_valid },
    };
    struct str id;
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (path_matches(pages[i].path, pages[i].valid, path, &id))
            return true;
    return false;
}

/* Whether text is as form says: '#' stands for a number, of which each is written in one way. */
static bool is_of_form(struct str text, struct str form)
{
    for (uint64_t n; form.len > 0; form = str_from(form, 1)) {
        size_t digits = 0;
        while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
            digits++;
        if (form.ptr[0] != '#')
            digits = text.len > 0 && text.ptr[0] == form.ptr[0];
        else if ((digits > 1 && str_starts(text, "0")) ||
                 !str_to_u64((struct str){ text.ptr, digits }, &n) || n > INT64_MAX)
            return false;
        if (!digits)
            return false;
        text = str_from(text, digits);
    }
    return text.len == 0;
}

/* False: it is not accepted. Empty, or not given: becomes the first that is. */
static bool param_take(const struct api_param *param, struct str *text)
{
    struct str rest = str_of(param->accepted), one, first = STR_NONE;
    for (bool found = false; str_split(&rest, '|', &one); found = true) {
        if (!found)
            first = one;
        if (text->len > 0 && is_of_form(*text, one))
            return true;
    }
    if (text->len > 0)
        return !param->accepted;
    *text = first;
    return true;
}

/* The key is the path's name and a line for each part, so no part may hold a line break. In lower
 * case, but for the ids of deliveries: nothing else differs by case. */
static bool ask_make(struct path_ask *ret, const struct api_path *path, struct str id,
                     const struct headers *query)
{
    struct buf CLEANUP(buf_clear) key = BUF_INIT(KEY_MAX_BYTES);
    struct str parts[1 + PATH_PARAMS_MAX] = { id };
    buf_puts(&key, path->name);
    for (size_t i = 0; i <= PATH_PARAMS_MAX; i++) {
        const struct api_param *param = i > 0 ? &path->params[i - 1] : NULL;
        if (param && param->name) {
            parts[i] = headers_get(query, param->name);
            if (!param_take(param, &parts[i])) {
                *ret = (struct path_ask){ .path = path, .fault = param->fault };
                return true;
            }
        }
        if (str_find(parts[i], '\n') >= 0)
            return false;
        buf_putc(&key, '\n');
        buf_put(&key, parts[i]);
    }
    if (buf_full(&key))
        return false;
    for (size_t i = 0; path->valid != delivery_valid && i < key.len; i++)
        if (key.ptr[i] >= 'A' && key.ptr[i] <= 'Z')
            key.ptr[i] += 'a' - 'A';
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
    for (size_t i = 0; i < API_PATHS; i++) {
        struct str id = STR_LIT("");
        if (path_matches(api_paths[i].path, api_paths[i].valid, path, &id))
            return ask_make(ret, &api_paths[i], id, query);
    }
    return false;
}

/* Decodes a part of a URL into *at, and moves that on; absent where it is malformed. */
static struct str decode(struct str from, bool query, char **at)
{
    struct str to = percent_decode(from, query, *at);
    *at += to.len;
    return to;
}

bool path_ask_parse(struct path_ask *ret, struct str target)
{
    char text[KEY_MAX_BYTES * 3], *at = text;
    struct headers query;
    struct str path, part, name;
    headers_init(&query);
    if (target.len > sizeof(text) || !str_split(&target, '?', &path))
        return false;
    path = decode(path, false, &at);
    while (str_split(&target, '&', &part)) {
        if (!str_split(&part, '=', &name))
            continue;
        name = decode(name, true, &at);
        part = decode(part, true, &at);
        if (!name.ptr || !part.ptr)
            return false;
        headers_put_str(&query, name, part);
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
    enum err err = ask->path->no_view ? OK : view_epoch_get(w->redis, &epoch, why);
    if (!err && !ask->path->no_view && epoch == 0) /* it lacks what it will show again */
        return detail(to, 503, VIEW_REBUILT ", try again");
    if (ask->path->with_list && !allowlist_feed_caught_up(w->reporter->feed))
        return detail(to, 503, "the allowlist is being read, try again");
    if (!err)
        err = ask->path->put(w, ask, to, &known, why);
    if (err)
        return detail(to, 503,
                      ask->path->no_view ? "the relay was not looked at yet, try again"
                                         : PATH_UNAVAILABLE);
    if (!known && ask->path->type) /* an image says it itself */
        return 404;
    if (!known)
        return detail(to, 404, "nothing is known of this");
    return buf_full(to) ? detail(to, 503, "the answer is too large") : 200;
}
