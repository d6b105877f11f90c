#include "manifests.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>

#include "../../common/base/file.h"
#include "../../common/crypto/hmac.h"
#include "app.h"
#include "options.h"
#include "shape.h"
#include "sim.h"

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* What the documentation requires, and a name as GitHub takes it. */
static const char *fault_of(const json_t *manifest)
{
    struct str name = str_of(text_of(manifest, "name"));

    if (!name.len || name.len > 34)
        return "name: 1 to 34 characters";
    if (!*text_of(manifest, "url"))
        return "url is missing";
    if (!*text_of(json_object_get(manifest, "hook_attributes"), "url"))
        return "hook_attributes.url is missing";
    if (!*text_of(manifest, "redirect_url"))
        return "redirect_url is missing";
    return NULL;
}

void manifests_confirm(struct sim *sim, const struct call *call, struct reply *reply)
{
    json_t *manifest = json_object_get(call->body, "manifest");
    const char *fault = fault_of(manifest);
    char code[41];

    if (fault) {
        reply_error(reply, 422, "%s", fault);
        return;
    }
    random_hex(code, 20);
    json_object_set(sim->manifests, code, call->body);
    reply_json(reply, 200, json_pack("{s:s}", "code", code));
}

void manifests_convert(struct sim *sim, const struct call *call, struct reply *reply)
{
    struct buf CLEANUP(buf_clear) pem = BUF_INIT(65536);
    char code[64] = "", secret[41];
    struct why why;

    (void)str_copy(code, sizeof(code), call->part[0]);
    json_t *confirmed = json_object_get(sim->manifests, code), *app;
    const json_t *manifest = json_object_get(confirmed, "manifest");
    if (!confirmed || file_read(&pem, open(sim->options->app_key, O_RDONLY | O_CLOEXEC), &why)) {
        reply_error(reply, 404, "Not Found");
        return;
    }
    random_hex(secret, 20);
    app = app_describe(sim->app, sim->base_url);
    json_object_set_new(app, "owner",
                        shape_user(sim->base_url, str_of(text_of(confirmed, "owner"))));
    json_object_set(app, "name", json_object_get(manifest, "name"));
    json_object_set(app, "external_url", json_object_get(manifest, "url"));
    json_object_set(app, "permissions", json_object_get(manifest, "default_permissions"));
    json_object_set(app, "events", json_object_get(manifest, "default_events"));
    json_object_set_new(app, "client_id", json_string("Iv1.8a61f9b3a7aba766"));
    json_object_set_new(app, "client_secret",
                        json_string("1726be1638095a19edd134c77bde3aa2ece1e5d8"));
    json_object_set_new(app, "webhook_secret", json_string(secret));
    json_object_set_new(app, "pem", json_stringn(buf_str(&pem).ptr, pem.len));
    json_object_del(sim->manifests, code);
    reply_json(reply, 201, app);
}

void manifests_hook(struct sim *sim, const struct call *call, struct reply *reply)
{
    const struct options *o = sim->options;

    (void)call;
    reply_json(reply, 200,
               json_pack("{s:s, s:s, s:s, s:s}", "content_type", "json", "insecure_ssl", "0",
                         "secret", o->webhook_secret ? "********" : "", "url",
                         o->webhook_url ? o->webhook_url : "https://relay.example/github/webhook"));
}
