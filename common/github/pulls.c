#include "pulls.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../model/json_member.h"

/* Its texts alone can be 64 KB each. */
#define PULL_MAX_BYTES (4u << 20)

enum err pull_get(struct github *g, struct str repo, int64_t number, github_answered_fn *done,
                  void *opaque, struct why *why)
{
    char path[REPO_MAX + 48];
    snprintf(path, sizeof(path), "/repos/%.*s/pulls/%" PRId64, STR_ARG(repo), number);
    struct github_request request = {
        .auth = GITHUB_AS_INSTALLATION,
        .permission = GITHUB_PULLS_READ,
        .method = "GET",
        .repo = repo,
        .path = path,
        .max_body_bytes = PULL_MAX_BYTES,
    };
    return github_start(g, &request, done, opaque, why);
}

static json_t *object_of(struct str body)
{
    json_t *document = json_document(body, NULL);
    if (json_is_object(document))
        return document;
    json_decref(document);
    return NULL;
}

enum err pull_read(struct str body, struct pull *ret, struct why *why)
{
    json_t *document = object_of(body);
    struct pull pull = {
        .number = json_integer_value(json_object_get(document, "number")),
        .open = str_is(json_member(document, "state"), "open"),
    };
    struct str sha = json_member(json_object_get(document, "head"), "sha");
    bool good = pull.number > 0 && sha.len && str_copy(pull.head_sha, sizeof(pull.head_sha), sha) &&
                !clock_parse(json_member(document, "updated_at"), &pull.updated_ms, why);
    json_decref(document);
    if (!good)
        return why_set(why, ERR_REFUSE,
                       "GitHub's answer is not the pull request that its documentation promises");
    *ret = pull;
    return OK;
}

static void take_over(json_t *to, const json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);
    if (value)
        json_object_set(to, name, value);
}

enum err pull_event(struct str body, struct str asked, struct buf *to, struct why *why)
{
    static const char *const context[] = { "repository", "organization", "sender", "installation" };
    json_t *pull = object_of(body), *webhook = object_of(asked);
    enum err err = OK;
    if (!pull || !webhook) {
        err = why_set(why, ERR_REFUSE, "%s is not a JSON object",
                      pull ? "the webhook" : "the pull request");
    } else {
        json_t *event = json_pack("{s:s}", "action", "reopened");
        take_over(event, pull, "number");
        json_object_set(event, "pull_request", pull);
        for (size_t i = 0; i < sizeof(context) / sizeof(context[0]); i++)
            take_over(event, webhook, context[i]);
        char *text = json_dumps(event, JSON_COMPACT);
        buf_puts(to, text);
        free(text);
        json_decref(event);
    }
    json_decref(pull);
    json_decref(webhook);
    return err;
}
