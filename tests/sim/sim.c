#include "sim.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/file.h"
#include "../../common/base/mem.h"
#include "app.h"
#include "callbacks.h"
#include "checks.h"
#include "comments.h"
#include "downstream.h"
#include "history.h"
#include "hook_deliveries.h"
#include "inbox.h"
#include "oidc.h"
#include "options.h"
#include "pulls.h"
#include "record.h"
#include "rows.h"
#include "runs.h"
#include "script.h"
#include "timers.h"

#define FILE_MAX_BYTES    (1u << 20)
#define REQUEST_MAX_BYTES (32u << 20)
#define TICK_MS           1000
#define DRAIN_MS          500

static enum err key_read(const char *path, struct buf *to, struct why *why)
{
    if (file_read(to, open(path, O_RDONLY | O_CLOEXEC), why))
        return why_prefix(why, ERR_REFUSE, "%s", path);
    return OK;
}

static enum err keys_load(struct sim *sim, struct why *why)
{
    const struct options *o = sim->options;
    struct buf CLEANUP(buf_clear) app_key, oidc_key;
    enum err err;

    buf_init(&app_key, FILE_MAX_BYTES);
    buf_init(&oidc_key, FILE_MAX_BYTES);
    err = key_read(o->app_key, &app_key, why);
    if (!err)
        err = key_read(o->oidc_key ? o->oidc_key : o->app_key, &oidc_key, why);
    if (!err)
        err = app_new(&sim->app,
                      &(struct app_options){ .app_id = o->app_id,
                                             .key_pem = buf_str(&app_key),
                                             .token_ttl_s = o->token_ttl_s,
                                             .rate_limit = o->rate_limit,
                                             .content_limit = o->content_limit,
                                             .content_window_ms = o->content_window_ms },
                      why);
    if (!err)
        err = oidc_new(&sim->oidc, buf_str(&oidc_key), o->oidc_issuer, why);
    return err;
}

/* Reads a JSON file; *ret is the caller's. */
static enum err document_load(const char *path, json_t **ret, struct why *why)
{
    json_error_t error;

    *ret = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (*ret)
        return OK;
    return why_set(why, ERR_STOP, "%s:%d:%d: %s", path, error.line, error.column, error.text);
}

static enum err rules_load(struct sim *sim, struct why *why)
{
    const struct options *o = sim->options;
    json_t *document = NULL;
    enum err err = OK;

    if (o->script) {
        err = document_load(o->script, &document, why);
        if (!err && script_add(sim->script, document, why))
            err = why_prefix(why, ERR_STOP, "%s", o->script);
        json_decref(document);
    }
    if (!err && o->downstreams) {
        err = document_load(o->downstreams, &document, why);
        if (!err && downstreams_add(sim->downstreams, document, why))
            err = why_prefix(why, ERR_STOP, "%s", o->downstreams);
        json_decref(document);
    }
    return err;
}

static void request_came(void *opaque, struct http_exchange *x)
{
    struct sim *sim = opaque;

    inbox_put(sim->inbox, x);
}

static enum err server_start(struct sim *sim, struct why *why)
{
    static const struct http_route routes[] = {
        { "GET", "/*", NULL, request_came, REQUEST_MAX_BYTES, 0, 0 },
        { "POST", "/*", NULL, request_came, REQUEST_MAX_BYTES, 0, 0 },
        { "PATCH", "/*", NULL, request_came, REQUEST_MAX_BYTES, 0, 0 },
        { "PUT", "/*", NULL, request_came, REQUEST_MAX_BYTES, 0, 0 },
        { "DELETE", "/*", NULL, request_came, REQUEST_MAX_BYTES, 0, 0 },
    };
    enum err err = http_server_new(
        &sim->server,
        &(struct http_server_options){ .listen = sim->options->listen,
                                       .routes = routes,
                                       .n_routes = sizeof(routes) / sizeof(routes[0]),
                                       .opaque = sim,
                                       .idle_timeout_s = 300,
                                       .json_error_key = "message" },
        why);

    if (err)
        return err;
    snprintf(sim->base_url, sizeof(sim->base_url), "http://127.0.0.1:%d",
             http_server_port(sim->server));
    return OK;
}

static void nouns_make(struct sim *sim)
{
    size_t keep = (size_t)sim->options->keep;

    sim->inbox = inbox_new(&sim->wake);
    sim->timers = timers_new();
    sim->sendings = sendings_new();
    sim->script = script_new();
    sim->checks = checks_new();
    sim->downstreams = downstreams_new();
    sim->runs = runs_new(keep);
    sim->dispatches = rows_new(keep);
    sim->callbacks = rows_new(keep);
    sim->comments = comments_new();
    sim->pulls = pulls_new();
    sim->manifests = json_object();
    sim->deliveries = deliveries_new();
    sim->hud = rows_new(keep);
}

enum err sim_new(struct sim **ret, const struct options *options, struct why *why)
{
    struct sim *sim = mem_alloc(1, sizeof(*sim));
    enum err err;

    sim->options = options;
    sim->wake.fd = -1;
    nouns_make(sim);
    err = wake_init(&sim->wake, why);
    if (!err)
        err = record_new(&sim->record, options->record, (size_t)options->keep, why);
    if (!err)
        err = history_open(&sim->history, options->history, why);
    if (!err)
        err = keys_load(sim, why);
    if (!err)
        err = rules_load(sim, why);
    if (!err)
        err = http_client_new(&sim->client,
                              &(struct http_client_options){ .user_agent = "crcr-sim" }, why);
    if (!err)
        err = server_start(sim, why);
    if (err)
        sim_free(sim);
    else
        *ret = sim;
    return err;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    /* Answers what waits first, so that the server has nothing to drain. The inbox goes after the
     * server, whose thread puts into it. */
    sendings_clear(sim->sendings);
    http_client_free(sim->client);
    sendings_free(sim->sendings);
    timers_free(sim->timers);
    inbox_refuse(sim->inbox);
    http_server_free(sim->server, DRAIN_MS);
    inbox_free(sim->inbox);
    if (sim->history)
        fclose(sim->history);
    record_free(sim->record);
    script_free(sim->script);
    checks_free(sim->checks);
    runs_free(sim->runs);
    downstreams_free(sim->downstreams);
    rows_free(sim->dispatches);
    rows_free(sim->callbacks);
    comments_free(sim->comments);
    pulls_free(sim->pulls);
    json_decref(sim->manifests);
    deliveries_free(sim->deliveries);
    rows_free(sim->hud);
    oidc_free(sim->oidc);
    app_free(sim->app);
    wake_clear(&sim->wake);
    free(sim);
}

void sim_reset(struct sim *sim)
{
    record_clear(sim->record);
    script_clear(sim->script);
    app_reset(sim->app);
    checks_reset(sim->checks);
    runs_reset(sim->runs);
    downstreams_reset(sim->downstreams);
    rows_reset(sim->dispatches);
    sendings_clear(sim->sendings);
    rows_reset(sim->callbacks);
    comments_reset(sim->comments);
    pulls_reset(sim->pulls);
    deliveries_reset(sim->deliveries);
    rows_reset(sim->hud);
}

void sim_turn(struct sim *sim)
{
    struct http_exchange *x;

    wake_reset(&sim->wake);
    while ((x = inbox_take(sim->inbox)))
        sim_handle(sim, x);
    timers_run(sim->timers);
    http_client_poll(sim->client, &sim->wake, timers_wait_ms(sim->timers, TICK_MS));
}
