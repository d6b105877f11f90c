#include "payload_fit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/json_scan.h"
#include "payload_path.h"

#define MARKER            "… [cut by crcr]"
#define LABELS            "pull_request.labels"
#define TRIMMED_MAX_BYTES 1500 /* it travels in client_payload too, and in a header */

struct fit {
    json_t *root;
    json_t *trimmed; /* paths of what went, each once */
    size_t trimmed_bytes;
    struct payload_path path; /* of the value that is looked at */
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
        size_t before = payload_path_push(&f->path, ".", name);
        if (visit(f, value, name, below, limit))
            walk(f, below, visit, limit);
        else
            json_object_del(value, name);
        payload_path_pop(&f->path, before);
    }
    if (!json_is_array(value))
        return;
    size_t before = payload_path_push(&f->path, "", "[]");
    json_array_foreach(value, i, below) walk(f, below, visit, limit);
    payload_path_pop(&f->path, before);
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

static bool is_long_text(const json_t *value, size_t limit)
{
    return json_is_string(value) && json_string_length(value) > limit + strlen(MARKER);
}

static void cut_text(json_t *value, size_t limit)
{
    struct buf text;
    buf_init(&text, limit + strlen(MARKER));
    buf_put(&text,
            str_cut((struct str){ json_string_value(value), json_string_length(value) }, limit));
    buf_puts(&text, MARKER);
    json_string_setn(value, text.ptr, text.len);
    buf_clear(&text);
}

/* Bodies, messages, descriptions. Not links: cut, they would lead elsewhere. */
static bool cut_long_text(struct fit *f, json_t *owner, const char *name, json_t *value,
                          size_t limit)
{
    (void)owner;
    if (!is_long_text(value, limit) || str_ends(str_of(name), "url") ||
        payload_path_protected(&f->path))
        return true;
    cut_text(value, limit);
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
        size_t before = payload_path_push(&f->path, ".", name);
        if (!is_in(name, kept) && !payload_path_leads(&f->path))
            json_object_del(object, name);
        payload_path_pop(&f->path, before);
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
    size_t before = payload_path_push(&f->path, "", "[]");
    json_array_foreach(value, i, element) reduce(f, owner, name, element, limit);
    payload_path_pop(&f->path, before);
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
        size_t before = payload_path_push(&f->path, ".", name);
        bool labels = strcmp(f->path.text, LABELS) == 0;
        bool keep = json_is_object(value)  ? strip_object(f, value)
                    : json_is_array(value) ? labels
                                           : payload_path_protected(&f->path);
        size_t inner = payload_path_push(&f->path, "", "[]");
        json_array_foreach(keep ? value : NULL, i, element) strip_object(f, element);
        payload_path_pop(&f->path, inner);
        payload_path_pop(&f->path, before);
        if (!keep)
            json_object_del(object, name);
    }
    return json_object_size(object) > 0;
}

static void strip(struct fit *f, size_t limit)
{
    (void)limit;
    note(f, "*");
    strip_object(f, f->root);
}

static void cut_title(struct fit *f, size_t limit)
{
    json_t *title = json_object_get(json_object_get(f->root, "pull_request"), "title");
    if (!is_long_text(title, limit))
        return;
    cut_text(title, limit);
    note(f, "pull_request.title");
}

static const struct step {
    visit_fn visit;                             /* either */
    void (*apply)(struct fit *f, size_t limit); /* or */
    size_t limit;                               /* bytes of a text, elements of a list */
} steps[] = {
    { drop_link, NULL, 0 },       { cut_long_text, NULL, 8192 }, { cut_long_text, NULL, 1024 },
    { reduce_elements, NULL, 0 }, { cut_long_text, NULL, 200 },  { cut_list, NULL, 100 },
    { cut_list, NULL, 20 },       { cut_list, NULL, 3 },         { NULL, strip, 0 },
    { NULL, cut_title, 1024 },
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
        if (steps[i].visit)
            walk(f, f->root, steps[i].visit, steps[i].limit);
        else
            steps[i].apply(f, steps[i].limit);
        if (fits(f, max_bytes))
            return OK;
    }
    return why_set(why, ERR_REFUSE,
                   "payload: %zu bytes of what must stay are left; at most %zu are accepted",
                   json_dumpb(f->root, NULL, 0, JSON_COMPACT), max_bytes);
}

enum err payload_fit(struct str body, size_t max_bytes, struct buf *to, struct buf *trimmed,
                     struct why *why)
{
    static const struct json_rules rules = { .nul_in_others = true };
    enum err err = json_scan(body, &rules, NULL, 0, NULL, why);
    if (err)
        return why_prefix(why, err, "payload");
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
