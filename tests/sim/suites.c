#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../../common/base/mem.h"
#include "app.h"
#include "checks_inner.h"
#include "shape.h"
#include "sim.h"

static char *key_of(struct str repo, struct str sha)
{
    size_t size = repo.len + sha.len + 2;
    char *key = mem_alloc(size, 1);

    snprintf(key, size, "%.*s@%.*s", STR_ARG(repo), STR_ARG(sha));
    for (char *c = key; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return key;
}

static struct suite *suite_at(const struct checks *c, const char *key)
{
    struct suite *suite;

    HASH_FIND_STR(c->suites, key, suite);
    return suite;
}

struct suite *suite_find(const struct checks *c, struct str repo, struct str sha)
{
    char *key = key_of(repo, sha);
    struct suite *suite = suite_at(c, key);

    free(key);
    return suite;
}

struct suite *suite_by_id(const struct checks *c, struct str repo, int64_t id)
{
    struct suite *suite = c->suites;

    while (suite && (suite->id != id || !str_eq_nocase(str_of(suite->repo), repo)))
        suite = suite->hh.next;
    return suite;
}

struct suite *suite_of(struct checks *c, struct str repo, struct str sha, int64_t now_ms)
{
    char *key = key_of(repo, sha);
    struct suite *suite = suite_at(c, key);

    if (suite) {
        free(key);
        return suite;
    }
    suite = mem_alloc(1, sizeof(*suite));
    suite->key = key;
    suite->repo = str_dup(repo);
    suite->sha = str_dup(sha);
    suite->id = c->next_id++;
    suite->created_ms = now_ms;
    HASH_ADD_KEYPTR(hh, c->suites, suite->key, strlen(suite->key), suite);
    return suite;
}

void suites_free(struct checks *c)
{
    struct suite *suite, *next;

    HASH_ITER(hh, c->suites, suite, next)
    {
        HASH_DEL(c->suites, suite);
        free(suite->key);
        free(suite->repo);
        free(suite->sha);
        free(suite);
    }
}

static int64_t runs_of(const struct suite *suite)
{
    const struct check *check;
    int64_t n = 0;

    DL_COUNT(suite->runs, check, n);
    return n;
}

json_t *suite_describe(struct sim *sim, const struct suite *suite)
{
    json_t *created = shape_time(suite->created_ms);
    json_t *url = json_sprintf("%s/repos/%s/check-suites/%lld", sim->base_url, suite->repo,
                               (long long)suite->id);
    json_t *document = json_pack(
        "{s:I, s:o, s:n, s:s, s:s, s:n, s:n, s:n, s:[], s:O, s:O, s:o, s:o, s:o, s:I}", "id",
        (json_int_t)suite->id, "node_id", shape_node_id("CS", suite->id), "head_branch", "head_sha",
        suite->sha, "status", "queued", "conclusion", "before", "after", "pull_requests",
        "created_at", created, "updated_at", created, "app", app_describe(sim->app, sim->base_url),
        "repository", shape_repo(sim->base_url, str_of(suite->repo)), "head_commit",
        shape_simple_commit(str_of(suite->sha)), "latest_check_runs_count",
        (json_int_t)runs_of(suite));

    json_object_set_new(document, "check_runs_url",
                        json_sprintf("%s/check-runs", json_string_value(url)));
    json_object_set_new(document, "url", url);
    json_decref(created);
    return document;
}

void suites_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct suite *suite = suite_by_id(sim->checks, call->repo, call_id(call, 0));

    if (suite)
        reply_json(reply, 200, suite_describe(sim, suite));
    else
        reply_error(reply, 404, "Not Found");
}
