#include "allowlist.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as mem_alloc; the default is exit() */
#include <uthash.h>

#include "../base/mem.h"
#include "ids.h"
#include "yaml_doc.h"

#define DEVICE_MAX 38  /* GitHub: a label has at most 50 characters; 12 are "ciflow/crcr/" */
#define ONCALL_MAX 100 /* "organization/team" */

struct listed {
    struct allowlist_entry entry;
    struct str *oncalls;
    char key[REPO_MAX + 1]; /* the repo in lower case */
    UT_hash_handle hh;
};

struct allowlist {
    struct yaml_doc *doc;  /* owns every text */
    struct listed **items; /* in file order */
    size_t n, cap;
    struct listed *by_repo;
};

/* What the functions below hand on. */
struct list_parse {
    struct allowlist *list;
    int level;
    struct str device;
    struct why *why;
};

#define FAULT(r, at, ...) yaml_doc_fault((r)->list->doc, at, (r)->why, __VA_ARGS__)
#define EXCERPT(node)     yaml_doc_excerpt((node)->text).text

/* ---- entries -----------------------------------------------------------------------------------
 */

static struct listed *listed_find(const struct allowlist *list, struct str repo)
{
    struct listed *item;
    char key[REPO_MAX + 1];
    if (str_find(repo, '\0') >= 0 || !str_lower(key, sizeof(key), repo))
        return NULL; /* it is no valid name anyway */
    HASH_FIND_STR(list->by_repo, key, item);
    return item;
}

static enum err item_add(struct list_parse *r, const struct yaml_doc_node *at, struct listed **ret)
{
    struct allowlist *list = r->list;
    if (at->kind != YAML_DOC_TEXT || !repo_valid(at->text))
        return FAULT(r, at, "%s is not a repository; accepted is " REPO_ACCEPTED,
                     yaml_doc_describe(at).text);
    const struct listed *same = listed_find(list, at->text);
    if (same)
        return FAULT(r, at, "%s is listed twice; the first is at line %d", EXCERPT(at),
                     same->entry.line);
    if (list->n == ALLOWLIST_MAX_REPOS)
        return FAULT(r, at, "more than %d repositories", ALLOWLIST_MAX_REPOS);

    struct listed *item = mem_alloc(1, sizeof(*item));
    item->entry = (struct allowlist_entry){ .repo = at->text,
                                            .level = r->level,
                                            .device = r->device,
                                            .pull_request = true,
                                            .nightly = true,
                                            .line = at->line };
    str_lower(item->key, sizeof(item->key), at->text);
    if (list->n == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 64;
        list->items = mem_resize(list->items, list->cap, sizeof(struct listed *));
    }
    list->items[list->n++] = item;
    HASH_ADD_STR(list->by_repo, key, item);
    *ret = item;
    return OK;
}

static enum err oncall_add(struct list_parse *r, struct listed *item,
                           const struct yaml_doc_node *at, struct str name)
{
    name = str_trim(name);
    if (str_starts(name, "@"))
        name = str_from(name, 1);
    if (name.len == 0)
        return OK;
    if (name.len > ONCALL_MAX)
        return FAULT(r, at, "the on-call name \"%s\" is too long; at most %d bytes are accepted",
                     yaml_doc_excerpt(name).text, ONCALL_MAX);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == 0x7f)
            return FAULT(r, at, "the on-call name \"%s\" has a control character",
                         yaml_doc_excerpt(name).text);
    struct allowlist_entry *entry = &item->entry;
    item->oncalls = mem_resize(item->oncalls, entry->n_oncalls + 1, sizeof(struct str));
    item->oncalls[entry->n_oncalls++] = name;
    entry->oncalls = item->oncalls;
    return OK;
}

/* "a, b", a list of names, or nothing. */
static enum err read_oncalls(struct list_parse *r, struct listed *item,
                             const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (yaml_doc_is_null(node))
        return OK;
    if (node->kind == YAML_DOC_MAP)
        return FAULT(r, node,
                     "a mapping where on-calls are expected; accepted is \"a, b\" or a "
                     "list of names");
    if (node->kind == YAML_DOC_TEXT) {
        struct str rest = node->text, name;
        while (!err && str_split(&rest, ',', &name))
            err = oncall_add(r, item, node, name);
        return err;
    }
    for (const struct yaml_doc_node *at = node->first; at && !err; at = at->next) {
        if (at->kind != YAML_DOC_TEXT)
            return FAULT(r, at, "%s in a list of on-calls; accepted are names",
                         yaml_doc_kind_name(at));
        err = oncall_add(r, item, at, at->text);
    }
    return err;
}

static enum err event_add(struct list_parse *r, struct listed *item, const struct yaml_doc_node *at)
{
    bool is_text = at->kind == YAML_DOC_TEXT;
    if (is_text && str_is(at->text, "pull_request"))
        item->entry.pull_request = true;
    else if (is_text && str_is(at->text, "nightly"))
        item->entry.nightly = true;
    else
        return FAULT(r, at,
                     "%s is not an event; accepted are pull_request (which covers push) and "
                     "nightly",
                     yaml_doc_describe(at).text);
    return OK;
}

static enum err read_events(struct list_parse *r, struct listed *item,
                            const struct yaml_doc_node *node)
{
    enum err err = OK;
    item->entry.pull_request = item->entry.nightly = false;
    if (node->kind != YAML_DOC_LIST)
        return event_add(r, item, node);
    if (!node->first)
        return FAULT(r, node, "no event is named; accepted are pull_request and nightly");
    for (const struct yaml_doc_node *at = node->first; at && !err; at = at->next)
        err = event_add(r, item, at);
    return err;
}

static enum err read_id(struct list_parse *r, const struct yaml_doc_node *key, int64_t *ret)
{
    const struct yaml_doc_node *node = key->next;
    if (node->kind != YAML_DOC_TEXT || !str_to_i64(node->text, ret) || *ret <= 0)
        return FAULT(r, node, "%s is %s; accepted is GitHub's number", EXCERPT(key),
                     yaml_doc_describe(node).text);
    return OK;
}

/* What follows a repository: on-calls, or {events: …, oncalls: …, repo_id: …, owner_id: …}. */
static enum err read_details(struct list_parse *r, struct listed *item,
                             const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (node->kind != YAML_DOC_MAP)
        return read_oncalls(r, item, node);
    for (const struct yaml_doc_node *key = node->first; key && !err; key = key->next->next) {
        if (str_is(key->text, "events"))
            err = read_events(r, item, key->next);
        else if (str_is(key->text, "oncalls"))
            err = read_oncalls(r, item, key->next);
        else if (str_is(key->text, "repo_id"))
            err = read_id(r, key, &item->entry.repo_id);
        else if (str_is(key->text, "owner_id"))
            err = read_id(r, key, &item->entry.owner_id);
        else
            err = FAULT(r, key,
                        "unknown key \"%s\"; accepted are events, oncalls, repo_id and owner_id",
                        EXCERPT(key));
    }
    return err;
}

/* ---- tiers -------------------------------------------------------------------------------------
 */

/* L1, L2 or L4: owner/repo, or {owner/repo: details}. */
static enum err read_list(struct list_parse *r, const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (node->kind != YAML_DOC_LIST)
        return FAULT(r, node, "L%d is %s; accepted is a list of owner/repo", r->level,
                     yaml_doc_kind_name(node));
    for (const struct yaml_doc_node *at = node->first; at && !err; at = at->next) {
        struct listed *item = NULL;
        bool has_details = at->kind == YAML_DOC_MAP;
        if (has_details && at->n != 2)
            return FAULT(r, at, "an entry with %zu keys; accepted is one repository an entry",
                         at->n / 2);
        err = item_add(r, has_details ? at->first : at, &item);
        if (!err && has_details)
            err = read_details(r, item, at->first->next);
    }
    return err;
}

/* The device ends up in a label, ciflow/crcr/<device>, and GitHub ignores the case of labels. */
static enum err check_device(struct list_parse *r, const struct yaml_doc_node *devices,
                             const struct yaml_doc_node *device)
{
    struct str name = device->text;
    if (str_trim(name).len == 0)
        return FAULT(r, device, "a device without a name");
    if (name.len > DEVICE_MAX)
        return FAULT(r, device, "the device \"%s\" is too long; a label takes %d bytes of it",
                     EXCERPT(device), DEVICE_MAX);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == ',' || name.ptr[i] == 0x7f)
            return FAULT(r, device, "the device \"%s\" has a character that a label cannot have",
                         EXCERPT(device));
    for (const struct yaml_doc_node *at = devices->first; at != device; at = at->next->next)
        if (str_eq_nocase(at->text, name))
            return FAULT(r, device, "the device %s is there twice; the first is at line %d",
                         EXCERPT(device), at->line);
    return OK;
}

static enum err read_device(struct list_parse *r, const struct yaml_doc_node *device,
                            const struct yaml_doc_node *repos)
{
    enum err err = OK;
    if (repos->kind != YAML_DOC_MAP)
        return FAULT(r, yaml_doc_is_null(repos) ? device : repos,
                     "the device %s has %s; accepted is a mapping of owner/repo to on-calls",
                     EXCERPT(device), yaml_doc_kind_name(repos));
    if (!repos->first)
        return FAULT(r, device, "the device %s has no repository", EXCERPT(device));
    r->device = device->text;
    for (const struct yaml_doc_node *repo = repos->first; repo && !err; repo = repo->next->next) {
        struct listed *item = NULL;
        err = item_add(r, repo, &item);
        if (!err)
            err = read_details(r, item, repo->next);
    }
    r->device = STR_NONE;
    return err;
}

static enum err read_devices(struct list_parse *r, const struct yaml_doc_node *node)
{
    enum err err = OK;
    if (node->kind != YAML_DOC_MAP)
        return FAULT(r, node, "L3 is %s; accepted is a mapping of device to {owner/repo: on-calls}",
                     yaml_doc_kind_name(node));
    for (const struct yaml_doc_node *device = node->first; device && !err;
         device = device->next->next) {
        err = check_device(r, node, device);
        if (!err)
            err = read_device(r, device, device->next);
    }
    return err;
}

static enum err read_tiers(struct list_parse *r, const struct yaml_doc_node *root)
{
    enum err err = OK;
    if (root->kind != YAML_DOC_MAP)
        return FAULT(r, root,
                     "%s where a mapping is expected; accepted are the keys L1, L2, L3, L4",
                     yaml_doc_kind_name(root));
    for (const struct yaml_doc_node *key = root->first; key && !err; key = key->next->next) {
        r->level = level_parse(key->text);
        if (!r->level)
            return FAULT(r, key, "unknown key \"%s\"; accepted are L1, L2, L3, L4", EXCERPT(key));
        if (yaml_doc_is_null(key->next))
            continue;
        err = r->level == 3 ? read_devices(r, key->next) : read_list(r, key->next);
    }
    return err;
}

/* ---- the list ----------------------------------------------------------------------------------
 */

enum err allowlist_parse(struct allowlist **ret, const char *file, struct str yaml, struct why *why)
{
    struct allowlist *list = mem_alloc(1, sizeof(*list));
    struct list_parse r = { .list = list, .device = STR_NONE, .why = why };
    enum err err = yaml_doc_parse(&list->doc, file, yaml, why);
    if (!err && yaml_doc_root(list->doc))
        err = read_tiers(&r, yaml_doc_root(list->doc));
    if (err) {
        allowlist_free(list);
        return err;
    }
    *ret = list;
    return OK;
}

void allowlist_free(struct allowlist *list)
{
    if (!list)
        return;
    HASH_CLEAR(hh, list->by_repo);
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i]->oncalls);
        free(list->items[i]);
    }
    free(list->items);
    yaml_doc_free(list->doc);
    free(list);
}

size_t allowlist_size(const struct allowlist *list)
{
    return list ? list->n : 0;
}

const struct allowlist_entry *allowlist_at(const struct allowlist *list, size_t i)
{
    return &list->items[i]->entry;
}

const struct allowlist_entry *allowlist_find(const struct allowlist *list, struct str repo)
{
    const struct listed *item = list ? listed_find(list, repo) : NULL;
    return item ? &item->entry : NULL;
}

size_t allowlist_lost(const struct allowlist *old, const struct allowlist *list)
{
    size_t lost = 0;
    for (size_t i = 0; i < old->n; i++)
        lost += !listed_find(list, old->items[i]->entry.repo);
    return lost;
}
