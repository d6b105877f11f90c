#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../../common/base/mem.h"
#include "../../common/model/callback.h"
#include "app.h"
#include "checks_inner.h"
#include "commits.h"
#include "page.h"
#include "shape.h"
#include "sim.h"

#define TEXT_MAX 65535 /* characters of output.summary and output.text */

struct checks *checks_new(void)
{
    struct checks *c = mem_alloc(1, sizeof(*c));

    c->next_id = 70001;
    return c;
}

void checks_reset(struct checks *c)
{
    struct check *check, *next;

    HASH_ITER(hh, c->runs, check, next)
    {
        HASH_DEL(c->runs, check);
        json_decref(check->document);
        free(check->repo);
        free(check);
    }
    suites_free(c);
}

void checks_free(struct checks *c)
{
    if (!c)
        return;
    checks_reset(c);
    free(c);
}

static struct check *check_find(struct checks *c, struct str repo, int64_t id)
{
    struct check *check;

    HASH_FIND(hh, c->runs, &id, sizeof(id), check);
    return check && str_eq_nocase(str_of(check->repo), repo) ? check : NULL;
}

/* What GitHub refuses with 422; NULL: nothing. */
static const char *output_fault(const json_t *output)
{
    static const char *const texts[] = { "summary", "text" };

    if (!output)
        return NULL;
    if (!json_is_string(json_object_get(output, "title")) ||
        !json_is_string(json_object_get(output, "summary")))
        return "Invalid request.\n\n\"title\" and \"summary\" of output must be strings.";
    for (size_t i = 0; i < 2; i++) {
        if (json_string_length(json_object_get(output, texts[i])) > TEXT_MAX)
            return "Only 65535 characters are allowed";
    }
    return NULL;
}

static const char *fields_fault(const struct call *call)
{
    static const char *const statuses[] = { "queued", "in_progress", "completed" };
    struct str status = call_text(call, "status"), conclusion = call_text(call, "conclusion");
    bool known = !status.ptr;

    for (size_t i = 0; i < 3; i++)
        known = known || str_is(status, statuses[i]);
    if (!known)
        return "Invalid request.\n\nstatus is not a member of [queued, in_progress, completed].";
    if (conclusion.ptr && (!conclusion_valid(conclusion) || str_is(conclusion, "stale")))
        return "Invalid request.\n\nconclusion is not one that an App may set.";
    if (str_is(status, "completed") && !conclusion.ptr)
        return "Invalid request.\n\nA completed check run must have a conclusion.";
    return output_fault(json_object_get(call->body, "output"));
}

static void output_apply(json_t *to, const json_t *from)
{
    static const char *const names[] = { "title", "summary", "text" };

    for (size_t i = 0; i < 3; i++) {
        json_t *value = json_object_get(from, names[i]);

        if (value)
            json_object_set(to, names[i], value);
    }
}

/* Takes the fields of the body over, with the times that GitHub fills in. */
static void fields_apply(json_t *to, const struct call *call)
{
    static const char *const names[] = { "name",   "details_url", "external_id", "started_at",
                                         "status", "conclusion",  "completed_at" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *value = json_object_get(call->body, names[i]);

        if (value)
            json_object_set(to, names[i], value);
    }
    if (call_text(call, "conclusion").ptr)
        json_object_set_new(to, "status", json_string("completed"));
    if (!str_is(str_of(json_string_value(json_object_get(to, "status"))), "completed")) {
        json_object_set_new(to, "conclusion", json_null());
        json_object_set_new(to, "completed_at", json_null());
    } else if (json_is_null(json_object_get(to, "completed_at"))) {
        json_object_set_new(to, "completed_at", shape_time(call->now_ms));
    }
    output_apply(json_object_get(to, "output"), json_object_get(call->body, "output"));
}

static json_t *document_new(struct sim *sim, const struct check *check, const struct call *call)
{
    json_t *url = json_sprintf("%s/repos/%s/check-runs/%lld", sim->base_url, check->repo,
                               (long long)check->id);
    json_t *output =
        json_pack("{s:n, s:n, s:n, s:i, s:o}", "title", "summary", "text", "annotations_count", 0,
                  "annotations_url", json_sprintf("%s/annotations", json_string_value(url)));
    json_t *document = json_pack(
        "{s:I, s:o, s:s, s:n, s:o, s:o, s:n, s:s, s:n, s:o, s:n, s:o, s:s, s:{s:I}, s:o, s:[]}",
        "id", (json_int_t)check->id, "node_id", shape_node_id("CR", check->id), "head_sha",
        check->suite->sha, "external_id", "url", url, "html_url",
        json_sprintf("https://github.com/%s/runs/%lld", check->repo, (long long)check->id),
        "details_url", "status", "queued", "conclusion", "started_at", shape_time(call->now_ms),
        "completed_at", "output", output, "name", "", "check_suite", "id",
        (json_int_t)check->suite->id, "app", app_describe(sim->app, sim->base_url),
        "pull_requests");

    json_object_set_new(document, "external_id", json_string(""));
    fields_apply(document, call);
    return document;
}

void checks_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct checks *c = sim->checks;
    struct str sha = call_text(call, "head_sha");
    const char *fault = fields_fault(call);
    struct check *check;

    if (!call_text(call, "name").len || !sha.len)
        fault = "Invalid request.\n\n\"name\" and \"head_sha\" must be supplied.";
    if (fault) {
        reply_error(reply, 422, "%s", fault);
        return;
    }
    if (!commit_known(sha)) {
        reply_error(reply, 422, "No commit found for SHA: %.*s", STR_ARG(sha));
        return;
    }
    check = mem_alloc(1, sizeof(*check));
    check->id = c->next_id++;
    check->repo = str_dup(call->repo);
    check->suite = suite_of(c, call->repo, sha, call->now_ms);
    check->document = document_new(sim, check, call);
    HASH_ADD(hh, c->runs, id, sizeof(check->id), check);
    DL_PREPEND(check->suite->runs, check);
    reply_json(reply, 201, json_incref(check->document));
}

void checks_update(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct check *check = check_find(sim->checks, call->repo, call_id(call, 0));
    const char *fault = fields_fault(call);
    json_t *changed;

    if (!check) {
        reply_error(reply, 404, "Not Found");
        return;
    }
    if (fault) {
        reply_error(reply, 422, "%s", fault);
        return;
    }
    changed = json_deep_copy(check->document); /* answers that still wait keep the old one */
    fields_apply(changed, call);
    json_decref(check->document);
    check->document = changed;
    reply_json(reply, 200, json_incref(changed));
}

void checks_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct check *check = check_find(sim->checks, call->repo, call_id(call, 0));

    if (check)
        reply_json(reply, 200, json_incref(check->document));
    else
        reply_error(reply, 404, "Not Found");
}

/* What a list is asked for; absent: any. */
struct filter {
    struct str name, status;
    bool latest; /* only the newest of a name */
};

static bool member_is(const json_t *document, const char *member, struct str value)
{
    return !value.len ||
           str_eq(str_of(json_string_value(json_object_get(document, member))), value);
}

/* Newest first; of a name only the first seen when the newest is wanted. No suite: no check runs.
 */
static json_t *filter_run(const struct suite *suite, const struct filter *f)
{
    json_t *list = json_array(), *names = json_object();
    const struct check *check;

    DL_FOREACH(suite ? suite->runs : NULL, check)
    {
        const char *name = json_string_value(json_object_get(check->document, "name"));

        if (!member_is(check->document, "name", f->name) ||
            !member_is(check->document, "status", f->status) ||
            (f->latest && json_object_get(names, name)))
            continue;
        json_object_set_new(names, name, json_true());
        json_array_append(list, check->document);
    }
    json_decref(names);
    return list;
}

static void list_reply(struct sim *sim, const struct call *call, const struct suite *suite,
                       struct reply *reply)
{
    const struct filter f = {
        .name = headers_get(call->query, "check_name"),
        .status = headers_get(call->query, "status"),
        .latest = !str_is(headers_get(call->query, "filter"), "all"),
    };
    json_t *all = filter_run(suite, &f);

    reply_json(reply, 200,
               json_pack("{s:I, s:o}", "total_count", (json_int_t)json_array_size(all),
                         "check_runs", page_take(sim->base_url, call, all, reply)));
    json_decref(all);
}

void checks_of_commit(struct sim *sim, const struct call *call, struct reply *reply)
{
    if (!commit_known(call->part[0]))
        reply_error(reply, 422, "No commit found for SHA: %.*s", STR_ARG(call->part[0]));
    else
        list_reply(sim, call, suite_find(sim->checks, call->repo, call->part[0]), reply);
}

void checks_of_suite(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct suite *suite = suite_by_id(sim->checks, call->repo, call_id(call, 0));

    if (suite)
        list_reply(sim, call, suite, reply);
    else
        reply_error(reply, 404, "Not Found");
}

json_t *checks_describe(const struct checks *c)
{
    json_t *list = json_array();

    for (const struct check *check = c->runs; check; check = check->hh.next) {
        json_t *row = json_copy(check->document);

        json_object_set_new(row, "repo", json_string(check->repo));
        json_array_append_new(list, row);
    }
    return list;
}
