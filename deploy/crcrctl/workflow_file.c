#include "workflow_file.h"

#include "../../common/model/yaml_doc.h"

#define EVENT "repository_dispatch"

/* The value of a mapping's key, or NULL. */
static const struct yaml_doc_node *value_of(const struct yaml_doc_node *map, const char *key)
{
    if (!map || map->kind != YAML_DOC_MAP)
        return NULL;
    for (const struct yaml_doc_node *at = map->first; at; at = at->next->next)
        if (str_is(at->text, key))
            return at->next;
    return NULL;
}

/* A text of that name, or a list that has one. */
static bool names(const struct yaml_doc_node *node, const char *name)
{
    if (node->kind == YAML_DOC_TEXT)
        return str_is(node->text, name);
    for (const struct yaml_doc_node *at = node->first; at && node->kind == YAML_DOC_LIST;
         at = at->next)
        if (at->kind == YAML_DOC_TEXT && str_is(at->text, name))
            return true;
    return false;
}

/* on: repository_dispatch; on: [push, repository_dispatch]; on: {repository_dispatch: {types: …}}
 */
static struct workflow_events events_of(const struct yaml_doc_node *on)
{
    struct workflow_events events = { false, false, false };
    const struct yaml_doc_node *dispatch = value_of(on, EVENT);
    const struct yaml_doc_node *types = value_of(dispatch, "types");
    events.listens = dispatch || (on && names(on, EVENT));
    events.pull_request = events.listens && (!types || names(types, "pull_request"));
    events.push = events.listens && (!types || names(types, "push"));
    return events;
}

enum err workflow_file_read(struct str yaml, const char *name, struct workflow_events *ret,
                            struct why *why)
{
    struct yaml_doc *doc;
    enum err err = yaml_doc_parse(&doc, name, yaml, why);
    if (err)
        return err;
    *ret = events_of(value_of(yaml_doc_root(doc), "on"));
    yaml_doc_free(doc);
    return OK;
}
