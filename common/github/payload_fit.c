#include "payload_fit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/json_scan.h"

#define MARKER            "… [cut by crcr]"
#define LABELS            "pull_request.labels"
#define TRIMMED_MAX_BYTES 1500 /* it travels in client_payload too, and in a header */

/* ---- where a value is, and whether it must stay ------------------------------------------------
 */

/* Members by name: "a.b", "a[].b"; NUL-terminated. All zero is the whole payload. */
struct path {
    char text[1024];
    size_t len;
};

/* What workflows of downstreams read, and what identifies repositories and people. A star stands
 * for every member that is no object or array. */
static const char *const protected_paths[] = {
    "action",
    "number",
    "ref",
    "base_ref",
    "before",
    "after",
    "created",
    "deleted",
    "forced",
    "pull_request.id",
    "pull_request.number",
    "pull_request.state",
    "pull_request.title",
    "pull_request.html_url",
    "pull_request.draft",
    "pull_request.merged",
    "pull_request.updated_at",
    "pull_request.merge_commit_sha",
    "pull_request.user.login",
    "pull_request.labels[].name",
    "pull_request.head.*",
    "pull_request.head.user.login",
    "pull_request.head.repo.id",
    "pull_request.head.repo.name",
    "pull_request.head.repo.full_name",
    "pull_request.head.repo.html_url",
    "pull_request.head.repo.clone_url",
    "pull_request.head.repo.fork",
    "pull_request.head.repo.private",
    "pull_request.head.repo.default_branch",
    "pull_request.base.*",
    "pull_request.base.user.login",
    "pull_request.base.repo.id",
    "pull_request.base.repo.name",
    "pull_request.base.repo.full_name",
    "pull_request.base.repo.html_url",
    "pull_request.base.repo.clone_url",
    "pull_request.base.repo.fork",
    "pull_request.base.repo.private",
    "pull_request.base.repo.default_branch",
    "label.name",
    "head_commit.id",
    "repository.id",
    "repository.name",
    "repository.full_name",
    "repository.html_url",
    "repository.clone_url",
    "repository.default_branch",
    "sender.id",
    "sender.login",
    "sender.html_url",
    "installation.id",
};

static bool matches(const struct path *path, const char *pattern)
{
    size_t n = strlen(pattern);
    if (!str_ends(str_of(pattern), ".*"))
        return path->len == n && memcmp(path->text, pattern, n) == 0;
    return path->len >= n && memcmp(path->text, pattern, n - 1) == 0 &&
           !strpbrk(path->text + n - 1, ".[");
}

/* True for what fitting never touches. */
static bool path_protected(const struct path *path)
{
    for (size_t i = 0; i < sizeof(protected_paths) / sizeof(protected_paths[0]); i++)
        if (matches(path, protected_paths[i]))
            return true;
    return false;
}

/* True also for what holds, or may hold, something protected. */
static bool path_leads(const struct path *path)
{
    for (size_t i = 0; i < sizeof(protected_paths) / sizeof(protected_paths[0]); i++) {
        struct str below = str_of(protected_paths[i]);
        if (below.len > path->len && memcmp(below.ptr, path->text, path->len) == 0 &&
            strchr(".[", below.ptr[path->len]))
            return true;
    }
    return path_protected(path);
}

/* Goes one member ("." and its name) or into the elements of an array ("" and "[]") deeper; gives
 * what path_pop takes to come back. What finds no room is left out: nothing protected is that long.
 */
static size_t path_push(struct path *p, const char *separator, const char *name)
{
    size_t before = p->len;
    int n =
        snprintf(p->text + p->len, sizeof(p->text) - p->len, "%s%s", p->len ? separator : "", name);
    p->len =
        n >= 0 && (size_t)n < sizeof(p->text) - p->len ? p->len + (size_t)n : sizeof(p->text) - 1;
    return before;
}

static void path_pop(struct path *p, size_t before)
{
    p->len = before;
    p->text[before] = '\0';
}

/* ---- one fit ------------------------------------------------------------------------------------
 */

struct fit {
    json_t *root;
    json_t *trimmed; /* paths of what went, each once */
    size_t trimmed_bytes;
    struct path path; /* of the value that is looked at */
};

/* ---- what went ---------------------------------------------------------------------------------
 */

static void note(struct fit *f, const char *what)
{
    size_t i;
    const json_t *known;
    json_array_foreach(f->trimmed, i,
                       known) if (strcmp(json_string_value(known), what) == 0) return;
    bool room = f->trimmed_bytes + strlen(what) < TRIMMED_MAX_BYTES;
    if (!room && f->trimmed_bytes >= TRIMMED_MAX_BYTES)
        return;
    f->trimmed_bytes = room ? f->trimmed_bytes + strlen(what) + 3 : TRIMMED_MAX_BYTES;
    json_array_append_new(f->trimmed, json_string(room ? what : "…"));
}

/* ---- a walk over all values --------------------------------------------------------------------
 */

/* Gets each value behind a member name, containers before what they hold. False: the member is
 * to be removed. Depth is bounded: json_scan refused what is deeper than JSON_MAX_DEPTH. */
typedef bool (*visit_fn)(struct fit *f, json_t *owner, const char *name, json_t *value,
                         size_t limit);

static void walk(struct fit *f, json_t *value, visit_fn visit, size_t limit)
{
    void *next;
    const char *name;
    json_t *below;
    size_t i;
    json_object_foreach_safe(value, next, name, below)
    {
        size_t before = path_push(&f->path, ".", name);
        if (visit(f, value, name, below, limit))
            walk(f, below, visit, limit);
        else
            json_object_del(value, name);
        path_pop(&f->path, before);
    }
    if (!json_is_array(value))
        return;
    size_t before = path_push(&f->path, "", "[]");
    json_array_foreach(value, i, below) walk(f, below, visit, limit);
    path_pop(&f->path, before);
}

/* ---- the steps, in their order -----------------------------------------------------------------
 */

static bool is_in(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

/* Links for people and for git stay; all others can be made from these. */
static bool drop_link(struct fit *f, json_t *owner, const char *name, json_t *value, size_t limit)
{
    static const char *const kept[] = { "html_url", "clone_url", "ssh_url", "git_url",
                                        "diff_url", "patch_url", NULL };
    (void)owner, (void)value, (void)limit;
    bool links = strcmp(name, "_links") == 0;
    if (!links && (!str_ends(str_of(name), "_url") || is_in(name, kept)))
        return true;
    note(f, links ? "_links" : "*_url");
    return false;
}

/* Bodies, messages, descriptions. Not links: cut, they would lead elsewhere. */
static bool cut_long_text(struct fit *f, json_t *owner, const char *name, json_t *value,
                          size_t limit)
{
    const struct str whole = { json_string_value(value), json_string_length(value) };
    struct buf CLEANUP(buf_clear) cut = BUF_INIT(limit + strlen(MARKER));
    (void)owner;
    if (whole.len <= limit + strlen(MARKER) || str_ends(str_of(name), "url") ||
        path_protected(&f->path))
        return true;
    buf_put(&cut, str_cut(whole, limit));
    buf_puts(&cut, MARKER);
    json_string_setn(value, cut.ptr, cut.len);
    note(f, f->path.text);
    return true;
}

static void keep_members(struct fit *f, json_t *object, const char *const *kept)
{
    void *next;
    const char *name;
    json_t *value;
    json_object_foreach_safe(object, next, name, value)
    {
        size_t before = path_push(&f->path, ".", name);
        if (!is_in(name, kept) && !path_leads(&f->path))
            json_object_del(object, name);
        path_pop(&f->path, before);
    }
}

static bool reduce(struct fit *f, json_t *owner, const char *name, json_t *value, size_t limit)
{
    static const char *const of_repository[] = { "id",        "name",    "full_name",
                                                 "html_url",  "fork",    "private",
                                                 "clone_url", "ssh_url", "default_branch",
                                                 "owner",     NULL };
    static const char *const of_user[] = { "id", "name", "login", "html_url", "type", NULL };
    (void)owner, (void)name, (void)limit;
    const char *const *kept = NULL;
    if (json_is_string(json_object_get(value, "full_name")))
        kept = of_repository;
    else if (json_is_string(json_object_get(value, "login")))
        kept = of_user;
    size_t members = json_object_size(value);
    if (kept)
        keep_members(f, value, kept);
    if (json_object_size(value) < members)
        note(f, f->path.text);
    return true;
}

/* People and their teams in arrays are not behind a member name. */
static bool reduce_elements(struct fit *f, json_t *owner, const char *name, json_t *value,
                            size_t limit)
{
    size_t i;
    json_t *element;
    size_t before = path_push(&f->path, "", "[]");
    json_array_foreach(value, i, element) reduce(f, owner, name, element, limit);
    path_pop(&f->path, before);
    return reduce(f, owner, name, value, limit);
}

/* Lists of commits are oldest first: the newest stay. The marker: a text at the end of a list of
 * texts, else a member beside the list that says how many went. */
static bool cut_list(struct fit *f, json_t *owner, const char *name, json_t *value, size_t limit)
{
    size_t n = json_array_size(value);
    if (n <= limit || strcmp(f->path.text, LABELS) == 0)
        return true;
    bool newest = strcmp(name, "commits") == 0;
    bool texts = json_is_string(json_array_get(value, 0));
    json_t *kept = json_array();
    for (size_t i = 0; i < limit; i++)
        json_array_append(kept, json_array_get(value, newest ? n - limit + i : i));
    char marker[96];
    if (texts) {
        snprintf(marker, sizeof(marker), "… %zu more [cut by crcr]", n - limit);
        json_array_append_new(kept, json_string(marker));
    } else if (strlen(name) < sizeof(marker) - sizeof("_cut")) {
        snprintf(marker, sizeof(marker), "%s_cut", name);
        json_int_t earlier = json_integer_value(json_object_get(owner, marker));
        json_object_set_new(owner, marker, json_integer(earlier + (json_int_t)(n - limit)));
    }
    note(f, f->path.text);
    json_array_clear(value);
    json_array_extend(value, kept);
    json_decref(kept);
    return true;
}

/* Leaves only what is protected. False when nothing is left of the object. */
static bool strip_object(struct fit *f, json_t *object)
{
    void *next;
    const char *name;
    json_t *value, *element;
    size_t i;
    json_object_foreach_safe(object, next, name, value)
    {
        size_t before = path_push(&f->path, ".", name);
        bool labels = strcmp(f->path.text, LABELS) == 0;
        bool keep = json_is_object(value)  ? strip_object(f, value)
                    : json_is_array(value) ? labels
                                           : path_protected(&f->path);
        size_t inner = path_push(&f->path, "", "[]");
        json_array_foreach(keep ? value : NULL, i, element) strip_object(f, element);
        path_pop(&f->path, inner);
        path_pop(&f->path, before);
        if (!keep)
            json_object_del(object, name);
    }
    return json_object_size(object) > 0;
}

/* Behind them strip_object, the last step. */
static const struct step {
    visit_fn visit;
    size_t limit; /* bytes of a text, elements of a list */
} steps[] = {
    { drop_link, 0 },       { cut_long_text, 8192 }, { cut_long_text, 1024 },
    { reduce_elements, 0 }, { cut_long_text, 200 },  { cut_list, 100 },
    { cut_list, 20 },       { cut_list, 3 },
};

/* ---- putting it together -----------------------------------------------------------------------
 */

static bool fits(const struct fit *f, size_t max_bytes)
{
    return json_dumpb(f->root, NULL, 0, JSON_COMPACT) <= max_bytes;
}

static enum err put_json(const json_t *json, struct buf *to, struct why *why)
{
    char *text = json_dumps(json, JSON_COMPACT);
    buf_puts(to, text ? text : "");
    bool ok = text && !buf_full(to);
    free(text);
    return ok ? OK : why_set(why, ERR_REFUSE, "payload: no room for the fitted text");
}

static enum err shrink(struct fit *f, size_t max_bytes, struct why *why)
{
    if (fits(f, max_bytes)) /* only blanks were too many */
        return OK;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        walk(f, f->root, steps[i].visit, steps[i].limit);
        if (fits(f, max_bytes))
            return OK;
    }
    note(f, "*");
    strip_object(f, f->root);
    if (fits(f, max_bytes))
        return OK;
    return why_set(why, ERR_REFUSE,
                   "payload: %zu bytes of what must stay are left; at most %zu are accepted",
                   json_dumpb(f->root, NULL, 0, JSON_COMPACT), max_bytes);
}

enum err payload_fit(struct str body, size_t max_bytes, struct buf *to, struct buf *trimmed,
                     struct why *why)
{
    bool has_nul = false;
    const struct json_rules rules = { .nul_in_others = true, .has_nul = &has_nul };
    struct buf CLEANUP(buf_clear) without = BUF_INIT(body.len);
    enum err err = json_scan(body, &rules, NULL, 0, NULL, why);
    if (err)
        return why_prefix(why, err, "payload");
    if (has_nul) { /* GitHub would refuse it, or the callback that echoes it be refused */
        json_replace_nul(&without, body, STR_LIT(""));
        body = buf_str(&without);
    }
    if (body.len <= max_bytes) {
        buf_put(to, body);
        return buf_full(to) ? why_set(why, ERR_REFUSE, "payload: no room for its text") : OK;
    }
    json_error_t fault;
    struct fit f = { .root = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, &fault) };
    if (!f.root)
        return why_set(why, ERR_REFUSE, "payload: %s", fault.text);
    f.trimmed = json_array();
    err = shrink(&f, max_bytes, why);
    if (!err)
        err = put_json(f.root, to, why);
    if (!err && json_array_size(f.trimmed))
        err = put_json(f.trimmed, trimmed, why);
    json_decref(f.root);
    json_decref(f.trimmed);
    return err;
}
