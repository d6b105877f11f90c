#include "pulls.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/mem.h"
#include "sim.h"

#define KEY_MAX 300

struct pulls {
    json_t *by_key; /* "<owner>/<repo>#<number>", lower case */
};

struct pulls *pulls_new(void)
{
    struct pulls *p = mem_alloc(1, sizeof(*p));

    p->by_key = json_object();
    return p;
}

void pulls_reset(struct pulls *p)
{
    json_object_clear(p->by_key);
}

void pulls_free(struct pulls *p)
{
    if (!p)
        return;
    json_decref(p->by_key);
    free(p);
}

static void key_of(char to[KEY_MAX], struct str repo, long long number)
{
    snprintf(to, KEY_MAX, "%.*s#%lld", STR_ARG(repo), number);
    for (char *c = to; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

void pulls_learn(struct pulls *p, const json_t *payload)
{
    const json_t *repo = json_object_get(payload, "repository");
    json_t *pull = json_deep_copy(json_object_get(payload, "pull_request"));
    char key[KEY_MAX];

    if (!json_is_object(pull)) {
        json_decref(pull);
        return;
    }
    if (!json_object_get(pull, "auto_merge")) /* GitHub's own examples are older than it */
        json_object_set_new(pull, "auto_merge", json_null());
    key_of(key, str_of(json_string_value(json_object_get(repo, "full_name"))),
           json_integer_value(json_object_get(pull, "number")));
    json_object_set_new(p->by_key, key, pull);
}

void pulls_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    char key[KEY_MAX];
    json_t *pull;

    key_of(key, call->repo, (long long)call_id(call, 0));
    pull = json_object_get(sim->pulls->by_key, key);
    if (pull)
        reply_json(reply, 200, json_incref(pull));
    else
        reply_error(reply, 404, "Not Found");
}

void pulls_put(struct sim *sim, const struct call *call, struct reply *reply)
{
    if (!json_is_object(json_object_get(call->body, "pull_request"))) {
        reply_error(reply, 422, "pull_request is needed, as a webhook has it");
        return;
    }
    pulls_learn(sim->pulls, call->body);
    reply_json(reply, 201, json_object());
}
