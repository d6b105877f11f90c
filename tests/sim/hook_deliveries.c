#include "hook_deliveries.h"

#include <jansson.h>
#include <stdlib.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "options.h"
#include "pulls.h"
#include "shape.h"
#include "sim.h"

#define HOOK_TIMEOUT_MS 10000 /* GitHub waits no longer */

struct deliveries {
    json_t *rows; /* whole hook-delivery documents, oldest first */
    int64_t next_id;
};

struct deliveries *deliveries_new(void)
{
    struct deliveries *d = mem_alloc(1, sizeof(*d));

    d->rows = json_array();
    d->next_id = 12000001;
    return d;
}

void deliveries_reset(struct deliveries *d)
{
    json_array_clear(d->rows);
}

void deliveries_free(struct deliveries *d)
{
    if (!d)
        return;
    json_decref(d->rows);
    free(d);
}

static json_t *item_of(const json_t *row)
{
    json_t *item = json_copy((json_t *)row);

    json_object_del(item, "request");
    json_object_del(item, "response");
    json_object_del(item, "url");
    return item;
}

json_t *deliveries_describe(const struct deliveries *d)
{
    json_t *list = json_array();

    for (size_t i = json_array_size(d->rows); i > 0; i--)
        json_array_append_new(list, item_of(json_array_get(d->rows, i - 1)));
    return list;
}

static int64_t id_of(const json_t *row)
{
    return json_integer_value(json_object_get(row, "id"));
}

static json_t *delivery_find(const struct deliveries *d, int64_t id)
{
    json_t *row;
    size_t i;

    json_array_foreach(d->rows, i, row)
    {
        if (id_of(row) == id)
            return row;
    }
    return NULL;
}

/* status=failure: answers of 400 … 599; success: of 200 … 399; what is pending is neither. */
static bool is_wanted(const json_t *row, struct str status)
{
    json_int_t code = json_integer_value(json_object_get(row, "status_code"));

    if (!status.len)
        return true;
    return str_is(status, "failure") ? code >= 400 && code <= 599 : code >= 200 && code <= 399;
}

/* The list pages by cursor, newest first: "v1_<id>" goes on below that id. */
void deliveries_list(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct str cursor = headers_get(call->query, "cursor");
    int64_t per_page = call_query(call, "per_page", 30), below = INT64_MAX, last = 0;
    json_t *list = json_array();

    if (cursor.len && (!str_starts(cursor, "v1_") || !str_to_i64(str_from(cursor, 3), &below))) {
        json_decref(list);
        reply_error(reply, 422, "Invalid cursor");
        return;
    }
    if (per_page < 1 || per_page > 100)
        per_page = 100;
    for (size_t i = json_array_size(sim->deliveries->rows); i > 0; i--) {
        const json_t *row = json_array_get(sim->deliveries->rows, i - 1);

        if (id_of(row) >= below || !is_wanted(row, headers_get(call->query, "status")))
            continue;
        if ((int64_t)json_array_size(list) == per_page) {
            reply_header(reply, "Link",
                         "<%s/app/hook/deliveries?per_page=%lld&cursor=v1_%lld>; rel=\"next\"",
                         sim->base_url, (long long)per_page, (long long)last);
            break;
        }
        last = id_of(row);
        json_array_append_new(list, item_of(row));
    }
    reply_json(reply, 200, list);
}

void deliveries_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *row = delivery_find(sim->deliveries, call_id(call, 0));

    if (row)
        reply_json(reply, 200, json_incref(row));
    else
        reply_error(reply, 404, "Not Found");
}

static void outcome_set(json_t *row, int status, const char *text, struct str body)
{
    json_t *payload = body.len ? json_stringn(body.ptr, body.len) : NULL;

    json_object_set_new(row, "status", json_string(text));
    json_object_set_new(row, "status_code", json_integer(status));
    json_object_set_new(
        row, "response",
        json_pack("{s:{}, s:o}", "headers", "payload", payload ? payload : json_null()));
}

static json_t *row_new(struct sim *sim, const char *guid, const char *event, json_t *payload,
                       bool redelivery)
{
    struct deliveries *d = sim->deliveries;
    json_t *headers = json_pack("{s:s, s:s, s:s, s:s}", "Content-Type", "application/json",
                                "X-GitHub-Event", event, "X-GitHub-Delivery", guid,
                                "X-GitHub-Hook-Installation-Target-Type", "integration");
    json_t *row = json_pack(
        "{s:I, s:s, s:o, s:b, s:f, s:s, s:i, s:s, s:O?, s:n, s:n, s:s, s:{s:o, s:O}, s:{s:{}, "
        "s:n}}",
        "id", (json_int_t)d->next_id++, "guid", guid, "delivered_at", shape_time(clock_wall_ms()),
        "redelivery", redelivery, "duration", 0.1, "status", "pending", "status_code", 0, "event",
        event, "action", json_object_get(payload, "action"), "installation_id", "repository_id",
        "url", sim->options->webhook_url ? sim->options->webhook_url : "", "request", "headers",
        headers, "payload", payload, "response", "headers", "payload");

    json_array_append_new(sim->deliveries->rows, row);
    return row;
}

/* ---- sending ----------------------------------------------------------------------------------
 */

struct webhook {
    json_t *row;
    char *body;
    int64_t began_us;
};

static void webhook_answered(void *opaque, const struct http_answer *answer)
{
    struct webhook *w = opaque;

    json_object_set_new(w->row, "duration",
                        json_real((double)(clock_mono_us() - w->began_us) / 1e6));
    if (answer->err)
        outcome_set(w->row, 502, "failed to connect to host", str_of(answer->reason));
    else
        outcome_set(w->row, answer->status, answer->status < 300 ? "OK" : "Invalid HTTP Response",
                    answer->body);
    json_decref(w->row);
    free(w->body);
    free(w);
}

static const char *request_header(const json_t *row, const char *name)
{
    return json_string_value(
        json_object_get(json_object_get(json_object_get(row, "request"), "headers"), name));
}

static void webhook_send(struct sim *sim, json_t *row)
{
    const struct options *o = sim->options;
    struct webhook *w = mem_alloc(1, sizeof(*w));
    char signature[sizeof("sha256=") + SHA256_HEX_SIZE] = "sha256=";
    struct headers headers;
    struct why why;

    w->row = json_incref(row);
    w->body = json_dumps(json_object_get(json_object_get(row, "request"), "payload"), JSON_COMPACT);
    w->began_us = clock_mono_us();
    hmac_sha256_hex(str_of(o->webhook_secret), str_of(w->body), signature + 7);
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "X-GitHub-Event", str_of(request_header(row, "X-GitHub-Event")));
    headers_put(&headers, "X-GitHub-Delivery", str_of(request_header(row, "X-GitHub-Delivery")));
    headers_put(&headers, "X-GitHub-Hook-ID", STR_LIT("1"));
    headers_put(&headers, "X-GitHub-Hook-Installation-Target-Type", STR_LIT("integration"));
    headers_put(&headers, "X-GitHub-Hook-Installation-Target-ID", str_of(o->app_id));
    headers_put(&headers, "X-Hub-Signature-256", str_of(signature));
    if (http_client_start(sim->client,
                          &(struct http_request){ .method = "POST",
                                                  .url = o->webhook_url,
                                                  .headers = &headers,
                                                  .body = str_of(w->body),
                                                  .timeout_ms = HOOK_TIMEOUT_MS },
                          webhook_answered, w, &why))
        webhook_answered(w, &(struct http_answer){ .err = ERR_RETRY, .reason = why.text });
}

void deliveries_attempt(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *old = delivery_find(sim->deliveries, call_id(call, 0));
    json_t *row;

    if (!old) {
        reply_error(reply, 404, "Not Found");
        return;
    }
    row = row_new(sim, json_string_value(json_object_get(old, "guid")),
                  json_string_value(json_object_get(old, "event")),
                  json_object_get(json_object_get(old, "request"), "payload"), true);
    if (sim->options->webhook_url)
        webhook_send(sim, row);
    else
        outcome_set(row, 200, "OK", STR_NONE);
    reply_json(reply, 202, json_object());
}

static void random_guid(char guid[37])
{
    char hex[33];

    random_hex(hex, 16);
    snprintf(guid, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

json_t *deliveries_send(struct sim *sim, const char *event, const char *guid, json_t *payload)
{
    char made[37];
    json_t *row;

    random_guid(made);
    pulls_learn(sim->pulls, payload);
    row = row_new(sim, guid ? guid : made, event, payload, false);
    if (sim->options->webhook_url)
        webhook_send(sim, row);
    else
        outcome_set(row, 502, "no --webhook-url", STR_NONE);
    return item_of(row);
}

void deliveries_create(struct sim *sim, const struct call *call, struct reply *reply)
{
    const char *event = json_string_value(json_object_get(call->body, "event"));
    const char *guid = json_string_value(json_object_get(call->body, "guid"));
    json_t *payload = json_object_get(call->body, "payload");
    json_t *status = json_object_get(call->body, "status_code");
    json_t *at = json_object_get(call->body, "delivered_at");
    char made[37];
    json_t *row;

    if (!event || !json_is_object(payload) || (!status && !sim->options->webhook_url)) {
        reply_error(reply, 422, "event, payload, and --webhook-url or status_code are needed");
        return;
    }
    if (!status) {
        reply_json(reply, 201, deliveries_send(sim, event, guid, payload));
        return;
    }
    random_guid(made);
    pulls_learn(sim->pulls, payload);
    row = row_new(sim, guid ? guid : made, event, payload,
                  json_is_true(json_object_get(call->body, "redelivery")));
    if (at)
        json_object_set(row, "delivered_at", at);
    outcome_set(row, (int)json_integer_value(status),
                json_integer_value(status) < 300 ? "OK" : "Invalid HTTP Response", STR_NONE);
    reply_json(reply, 201, item_of(row));
}
