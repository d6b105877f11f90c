#include "payload_path.h"

#include <stdio.h>
#include <string.h>

#include "../base/str.h"

/* What workflows of downstreams read (behaviour.md, routing), and what identifies repositories and
 * people. A star stands for every member that is no object or array. */
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

static bool matches(const struct payload_path *path, const char *pattern)
{
    size_t n = strlen(pattern);
    if (!str_ends(str_of(pattern), ".*"))
        return path->len == n && memcmp(path->text, pattern, n) == 0;
    return path->len >= n && memcmp(path->text, pattern, n - 1) == 0 &&
           !strpbrk(path->text + n - 1, ".[");
}

bool payload_path_protected(const struct payload_path *path)
{
    for (size_t i = 0; i < sizeof(protected_paths) / sizeof(protected_paths[0]); i++)
        if (matches(path, protected_paths[i]))
            return true;
    return false;
}

bool payload_path_leads(const struct payload_path *path)
{
    for (size_t i = 0; i < sizeof(protected_paths) / sizeof(protected_paths[0]); i++) {
        struct str below = str_of(protected_paths[i]);
        if (below.len > path->len && memcmp(below.ptr, path->text, path->len) == 0 &&
            strchr(".[", below.ptr[path->len]))
            return true;
    }
    return payload_path_protected(path);
}

/* What finds no room is left out: nothing protected is that long. */
size_t payload_path_push(struct payload_path *p, const char *separator, const char *name)
{
    size_t before = p->len;
    int n =
        snprintf(p->text + p->len, sizeof(p->text) - p->len, "%s%s", p->len ? separator : "", name);
    p->len =
        n >= 0 && (size_t)n < sizeof(p->text) - p->len ? p->len + (size_t)n : sizeof(p->text) - 1;
    return before;
}

void payload_path_pop(struct payload_path *p, size_t before)
{
    p->len = before;
    p->text[before] = '\0';
}
