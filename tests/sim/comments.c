#include "comments.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/mem.h"
#include "app.h"
#include "page.h"
#include "shape.h"
#include "sim.h"

#define BODY_MAX 65536 /* characters */

struct comments {
    json_t *rows; /* as GitHub shows them */
    int64_t next_id;
};

struct comments *comments_new(void)
{
    struct comments *c = mem_alloc(1, sizeof(*c));

    c->rows = json_array();
    c->next_id = 30001;
    return c;
}

void comments_reset(struct comments *c)
{
    json_array_clear(c->rows);
}

void comments_free(struct comments *c)
{
    if (!c)
        return;
    json_decref(c->rows);
    free(c);
}

json_t *comments_describe(const struct comments *c)
{
    return json_copy(c->rows);
}

static bool body_refused(const struct call *call, struct reply *reply)
{
    struct str body = call_text(call, "body");

    if (body.len && body.len <= BODY_MAX)
        return false;
    reply_error(reply, 422,
                body.len ? "Validation Failed: body is too long (maximum is 65536 characters)"
                         : "Invalid request.\n\n\"body\" wasn't supplied.");
    return true;
}

/* One comment as GitHub shows it; takes over app: the App that wrote it, or null. */
static json_t *comment_make(struct sim *sim, const struct call *call, struct str repo,
                            struct str number, struct str login, json_t *app)
{
    int64_t id = sim->comments->next_id++;
    struct str body = call_text(call, "body");
    json_t *created = shape_time(call->now_ms);
    json_t *comment = json_pack(
        "{s:I, s:o, s:s%, s:o, s:o, s:o, s:o, s:O, s:O, s:s, s:o}", "id", (json_int_t)id, "node_id",
        shape_node_id("IC", id), "body", body.ptr, body.len, "url",
        json_sprintf("%s/repos/%.*s/issues/comments/%lld", sim->base_url, STR_ARG(repo),
                     (long long)id),
        "html_url",
        json_sprintf("https://github.com/%.*s/pull/%.*s#issuecomment-%lld", STR_ARG(repo),
                     STR_ARG(number), (long long)id),
        "issue_url",
        json_sprintf("%s/repos/%.*s/issues/%.*s", sim->base_url, STR_ARG(repo), STR_ARG(number)),
        "user", shape_user(sim->base_url, login), "created_at", created, "updated_at", created,
        "author_association", "NONE", "performed_via_github_app", app);

    json_decref(created);
    json_array_append(sim->comments->rows, comment);
    return comment;
}

void comments_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    if (!body_refused(call, reply))
        reply_json(reply, 201,
                   comment_make(sim, call, call->repo, call->part[0], STR_LIT("crcr-sim[bot]"),
                                app_describe(sim->app, sim->base_url)));
}

void comments_put(struct sim *sim, const struct call *call, struct reply *reply)
{
    char number[24];
    json_t *app = json_null();

    if (body_refused(call, reply))
        return;
    if (json_is_true(json_object_get(call->body, "by_another_app"))) {
        app = app_describe(sim->app, sim->base_url);
        json_object_set_new(app, "id", json_integer(1));
    }
    snprintf(number, sizeof(number), "%lld",
             (long long)json_integer_value(json_object_get(call->body, "number")));
    reply_json(reply, 201,
               comment_make(sim, call, call_text(call, "repo"), str_of(number),
                            call_text(call, "login"), app));
}

static bool comment_is_ours(struct sim *sim, const json_t *comment)
{
    json_t *ours = app_describe(sim->app, sim->base_url);
    const json_t *app = json_object_get(comment, "performed_via_github_app");
    bool same = json_integer_value(json_object_get(app, "id")) ==
                json_integer_value(json_object_get(ours, "id"));

    json_decref(ours);
    return same;
}

static bool comment_is_on(const json_t *comment, const char *base, const struct call *call)
{
    char url[512];

    snprintf(url, sizeof(url), "%s/repos/%.*s/issues/%.*s", base, STR_ARG(call->repo),
             STR_ARG(call->part[0]));
    return str_eq_nocase(str_of(json_string_value(json_object_get(comment, "issue_url"))),
                         str_of(url));
}

void comments_list(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *all = json_array();
    json_t *comment;
    size_t i;

    json_array_foreach(sim->comments->rows, i, comment)
    {
        if (comment_is_on(comment, sim->base_url, call))
            json_array_append(all, comment);
    }
    reply_json(reply, 200, page_take(sim->base_url, call, all, reply));
    json_decref(all);
}

void comments_update(struct sim *sim, const struct call *call, struct reply *reply)
{
    int64_t id = call_id(call, 0);
    json_t *comment;
    size_t i;

    if (body_refused(call, reply))
        return;
    json_array_foreach(sim->comments->rows, i, comment)
    {
        json_t *changed;

        if (json_integer_value(json_object_get(comment, "id")) != id)
            continue;
        if (!comment_is_ours(sim, comment)) {
            reply_error(reply, 403, "Resource not accessible by integration");
            return;
        }
        changed = json_copy(comment);
        json_object_set(changed, "body", json_object_get(call->body, "body"));
        json_object_set_new(changed, "updated_at", shape_time(call->now_ms));
        json_array_set(sim->comments->rows, i, changed);
        reply_json(reply, 200, changed);
        return;
    }
    reply_error(reply, 404, "Not Found");
}
