#include "shape.h"

#include <jansson.h>
#include <stdio.h>

#include "../../common/base/clock.h"

/* Any fixed moment: before the first event of any test. */
#define LONG_AGO_MS 1577836800000 /* 2020-01-01T00:00:00Z */

json_t *shape_time(int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format(wall_ms, text);
    return json_sprintf("%.19sZ", text);
}

/* FNV-1a, cut to what fits a positive 31-bit number. */
int64_t shape_id(struct str text)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * 1099511628211u;
    return (int64_t)(hash >> 33) | 1;
}

json_t *shape_node_id(const char *kind, int64_t id)
{
    return json_sprintf("%s_%lld", kind, (long long)id);
}

/* For each name of the list a member "<name>_url". */
static void set_links(json_t *to, const char *prefix, const char *names)
{
    struct str rest = str_of(names), name;
    char key[64];

    while (str_split(&rest, ' ', &name)) {
        snprintf(key, sizeof(key), "%.*s_url", STR_ARG(name));
        json_object_set_new(to, key, json_sprintf("%s/%.*s", prefix, STR_ARG(name)));
    }
}

json_t *shape_user(const char *base, struct str login)
{
    static const char links[] = "followers following gists starred subscriptions organizations "
                                "repos events received_events";
    char prefix[512];
    int64_t id = shape_id(login);
    json_t *user;

    snprintf(prefix, sizeof(prefix), "%s/users/%.*s", base, STR_ARG(login));
    user = json_pack("{s:s%, s:I, s:o, s:s, s:s, s:s, s:s, s:b}", "login", login.ptr, login.len,
                     "id", (json_int_t)id, "node_id", shape_node_id("U", id), "avatar_url",
                     "https://avatars.githubusercontent.com/u/1", "gravatar_id", "", "url", prefix,
                     "type", "Organization", "site_admin", 0);
    json_object_set_new(user, "html_url", json_sprintf("https://github.com/%.*s", STR_ARG(login)));
    set_links(user, prefix, links);
    return user;
}

json_t *shape_repo(const char *base, struct str full_name)
{
    static const char links[] =
        "archive assignees blobs branches collaborators comments commits compare contents "
        "contributors deployments downloads events forks git_commits git_refs git_tags hooks "
        "issue_comment issue_events issues keys labels languages merges milestones notifications "
        "pulls releases stargazers statuses subscribers subscription tags teams trees";
    ptrdiff_t slash = str_find(full_name, '/');
    struct str owner = { full_name.ptr, slash < 0 ? full_name.len : (size_t)slash };
    struct str name = slash < 0 ? full_name : str_from(full_name, (size_t)slash + 1);
    int64_t id = shape_id(full_name);
    char prefix[512];
    json_t *repo;

    snprintf(prefix, sizeof(prefix), "%s/repos/%.*s", base, STR_ARG(full_name));
    repo = json_pack("{s:I, s:o, s:s%, s:s%, s:o, s:b, s:n, s:b, s:s}", "id", (json_int_t)id,
                     "node_id", shape_node_id("R", id), "name", name.ptr, name.len, "full_name",
                     full_name.ptr, full_name.len, "owner", shape_user(base, owner), "private", 0,
                     "description", "fork", 0, "url", prefix);
    json_object_set_new(repo, "html_url",
                        json_sprintf("https://github.com/%.*s", STR_ARG(full_name)));
    set_links(repo, prefix, links);
    return repo;
}

static json_t *signature(void)
{
    return json_pack("{s:s, s:s, s:o}", "name", "A Developer", "email", "dev@example.org", "date",
                     shape_time(LONG_AGO_MS));
}

json_t *shape_simple_commit(struct str sha)
{
    json_t *who = json_pack("{s:s, s:s}", "name", "A Developer", "email", "dev@example.org");
    json_t *commit = json_pack("{s:s%, s:s%, s:s, s:o, s:O, s:O}", "id", sha.ptr, sha.len,
                               "tree_id", sha.ptr, sha.len, "message", "A commit", "timestamp",
                               shape_time(LONG_AGO_MS), "author", who, "committer", who);

    json_decref(who);
    return commit;
}

json_t *shape_commit(const char *base, struct str repo, struct str sha)
{
    json_t *url = json_sprintf("%s/repos/%.*s/commits/%.*s", base, STR_ARG(repo), STR_ARG(sha));
    json_t *inner = json_pack("{s:O, s:o, s:o, s:s, s:i, s:{s:s%, s:O}}", "url", url, "author",
                              signature(), "committer", signature(), "message", "A commit",
                              "comment_count", 0, "tree", "sha", sha.ptr, sha.len, "url", url);
    json_t *commit = json_pack(
        "{s:s%, s:o, s:o, s:O, s:o, s:o, s:n, s:n, s:[]}", "sha", sha.ptr, sha.len, "node_id",
        shape_node_id("C", shape_id(sha)), "commit", inner, "url", url, "html_url",
        json_sprintf("https://github.com/%.*s/commit/%.*s", STR_ARG(repo), STR_ARG(sha)),
        "comments_url", json_sprintf("%s/comments", json_string_value(url)), "author", "committer",
        "parents");

    json_decref(url);
    return commit;
}
