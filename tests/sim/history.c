#include "history.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "../../common/base/clock.h"

enum err history_open(FILE **ret, const char *path, struct why *why)
{
    if (!path)
        return OK;
    FILE *file = fopen(path, "ae");
    if (!file)
        return why_set(why, ERR_STOP, "cannot write %s: %s", path, strerror(errno));
    setvbuf(file, NULL, _IOLBF, 0);
    *ret = file;
    return OK;
}

static void put(FILE *file, json_t *line)
{
    json_dumpf(line, file, JSON_COMPACT);
    fputc('\n', file);
    json_decref(line);
}

/* What tells two events of one pull request apart, without the body. */
void history_dispatch(FILE *file, const struct call *call, const struct run *run)
{
    const json_t *sent = json_object_get(call->body, "client_payload");
    const json_t *payload = json_object_get(sent, "payload");
    const json_t *request = json_object_get(payload, "pull_request");
    if (!file)
        return;
    put(file,
        json_pack("{s:s, s:I, s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:I}", "kind", "dispatch", "at_ms",
                  (json_int_t)call->now_ms, "repo", run->repo, "delivery",
                  json_object_get(sent, "delivery_id"), "event_type",
                  json_object_get(sent, "event_type"), "pr", json_object_get(payload, "number"),
                  "ref", json_object_get(payload, "ref"), "updated_at",
                  json_object_get(request, "updated_at"), "run_id", (json_int_t)run->id));
}

void history_callback(FILE *file, const json_t *row)
{
    json_int_t status = json_integer_value(json_object_get(row, "http_status"));
    bool taken = status >= 200 && status <= 299;
    if (!file || (!taken && (status < 400 || status > 499 || status == 429)))
        return;
    json_t *line = json_copy((json_t *)row);
    json_object_set_new(line, "kind", json_string(taken ? "callback" : "refusal"));
    put(file, line);
}

void history_hud(FILE *file, const json_t *post)
{
    const json_t *callback =
        json_object_get(json_object_get(post, "untrusted"), "callback_payload");
    const json_t *workflow = json_object_get(callback, "workflow");
    if (!file)
        return;
    put(file,
        json_pack("{s:s, s:O?, s:O?, s:O?, s:O?, s:O?}", "kind", "hud", "repo",
                  json_object_get(json_object_get(post, "trusted"), "verified_repo"), "delivery_id",
                  json_object_get(callback, "delivery_id"), "run_id",
                  json_object_get(workflow, "run_id"), "job", json_object_get(workflow, "job_name"),
                  "status", json_object_get(workflow, "status")));
}
