#include "buttons.h"

#include <jansson.h>

#include "checks_inner.h"
#include "hook_deliveries.h"
#include "shape.h"
#include "sim.h"

/* ---- re-run ------------------------------------------------------------------------------------
 */

static json_t *payload_of(struct sim *sim, const char *repo, const char *noun, json_t *document)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "action", "rerequested", noun, document, "repository",
                     shape_repo(sim->base_url, str_of(repo)), "sender",
                     shape_user(sim->base_url, STR_LIT("a-developer")));
}

static json_t *check_run_payload(struct sim *sim, int64_t id)
{
    const struct check *check;
    json_t *document;

    HASH_FIND(hh, sim->checks->runs, &id, sizeof(id), check);
    if (!check)
        return NULL;
    document = json_copy(check->document);
    json_object_set_new(document, "check_suite", suite_describe(sim, check->suite));
    return payload_of(sim, check->repo, "check_run", document);
}

static json_t *check_suite_payload(struct sim *sim, int64_t id)
{
    const struct suite *suite = sim->checks->suites;

    while (suite && suite->id != id)
        suite = suite->hh.next;
    if (!suite)
        return NULL;
    return payload_of(sim, suite->repo, "check_suite", suite_describe(sim, suite));
}

void buttons_rerequest(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_int_t run = json_integer_value(json_object_get(call->body, "check_run"));
    json_int_t suite = json_integer_value(json_object_get(call->body, "check_suite"));
    json_t *payload = run ? check_run_payload(sim, run) : check_suite_payload(sim, suite);

    if (payload)
        reply_json(reply, 201,
                   deliveries_send(sim, run ? "check_run" : "check_suite", NULL, payload));
    else
        reply_error(reply, 404, "no check_run or check_suite has that id");
    json_decref(payload);
}

/* ---- check runs --------------------------------------------------------------------------------
 */

static struct check *newest(struct checks *c)
{
    return ELMT_FROM_HH(c->runs->hh.tbl, c->runs->hh.tbl->tail);
}

/* The App of the check run that was made last. */
static void set_app(struct sim *sim, json_t *app_id)
{
    struct check *check = newest(sim->checks);
    json_t *changed = json_deep_copy(check->document);

    json_object_set(json_object_get(changed, "app"), "id", app_id);
    json_decref(check->document);
    check->document = changed;
}

void buttons_check_runs(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *made = json_array(), *wanted;
    size_t i;

    json_array_foreach(call->body, i, wanted)
    {
        struct call one = *call;
        struct reply answer;
        int status;

        one.body = wanted;
        one.repo = call_text(&one, "repo");
        reply_init(&answer);
        checks_create(sim, &one, &answer);
        status = answer.status;
        reply_clear(&answer);
        if (status != 201) {
            json_decref(made);
            reply_error(reply, 422, "check run %zu is none that GitHub would take", i + 1);
            return;
        }
        if (json_object_get(wanted, "app_id"))
            set_app(sim, json_object_get(wanted, "app_id"));
        json_array_append(made, newest(sim->checks)->document);
    }
    reply_json(reply, 201, made);
}
