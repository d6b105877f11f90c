/* crcr-dispatcher: wires configuration, keys and roles. */
#include <stdlib.h>
#include <string.h>

#include "../common/base/log.h"
#include "../common/base/mem.h"
#include "dispatcher.h"
#include "metrics.h"

extern char **environ;

static const struct role roles[] = {
    { "router", "events to tasks; fetches and publishes the allowlist", router_run },
    { "l1", "sends the tasks of tier L1", sender_run },
    { "l2", "sends the tasks of tier L2", sender_run },
    { "l3", "sends the tasks of tier L3", sender_run },
    { "l4", "sends the tasks of tier L4", sender_run },
    { "delay", "brings parked tasks back when they are due", delay_run },
};

static void stop(void *opaque)
{
    struct dispatcher *d = opaque;
    if (!d)
        return;
    allowlist_feed_free(d->feed);
    gate_free(d->gate);
    callback_keys_free(d->callback_keys);
    jwt_key_free(d->key);
    free(d->api_url);
    free(d);
}

static enum err read_keys(struct dispatcher *d, struct why *why)
{
    const char *spec = config_text(d->config, "CRCR_CALLBACK_TOKEN_KEY");
    enum err err =
        jwt_key_new(&d->key, str_of(config_text(d->config, "GITHUB_APP_PRIVATE_KEY")), why);
    if (err)
        return why_prefix(why, ERR_STOP, "GITHUB_APP_PRIVATE_KEY");
    if (!spec || !*spec) {
        log_warn("callback_tokens_off",
                 LOG_STR("why", STR_LIT("CRCR_CALLBACK_TOKEN_KEY is not set: callbacks are matched "
                                        "with the dispatch record in Redis only")));
        return OK;
    }
    err = callback_keys_new(&d->callback_keys, str_of(spec), why);
    return err ? why_prefix(why, ERR_STOP, "CRCR_CALLBACK_TOKEN_KEY") : OK;
}

static enum err read_config(struct dispatcher *d, const struct config *config, struct why *why)
{
    struct str url = str_of(config_text(config, "CRCR_GITHUB_API_URL"));
    while (str_ends(url, "/"))
        url.len--;
    d->config = config;
    d->api_url = str_dup(url);
    d->upstream_repo = str_of(config_text(config, "UPSTREAM_REPO"));
    d->app_id = config_text(config, "GITHUB_APP_ID");
    if (!str_to_i64(str_of(d->app_id), &d->app_number))
        d->app_number = 0;
    d->max_age_ms = config_number(config, "CRCR_MAX_EVENT_AGE") * 1000;
    d->ttl_ms = config_number(config, "ALLOWLIST_TTL_SECONDS") * 1000;
    d->kafka = config_kafka(config, "crcr-dispatcher");
    d->http = (struct http_client_options){
        .user_agent = "crcr-dispatcher",
        .ca_file = config_text(config, "CRCR_CA_FILE"),
    };
    if (topics_init(&d->topics, config_text(config, "CRCR_TOPIC_PREFIX"), why))
        return ERR_STOP;
    struct budget_rules rules;
    enum err err = read_keys(d, why);
    if (!err)
        err = config_budget(config, &rules, why);
    if (err)
        return err;
    d->gate = gate_new(&rules);
    if (content_source_parse(&d->allowlist, str_of(config_text(config, "ALLOWLIST_URL")), why))
        return why_prefix(why, ERR_STOP, "ALLOWLIST_URL");
    const char *providers = config_text(config, "CI_PROVIDERS_URL");
    d->has_providers = providers && *providers;
    if (d->has_providers && content_source_parse(&d->providers, str_of(providers), why))
        return why_prefix(why, ERR_STOP, "CI_PROVIDERS_URL");
    return OK;
}

/* --check-config: also reads the files that are on this machine. */
struct file_check {
    bool is_list;
    const char *name;
    enum err err;
    struct why *why;
};

static void check_text(void *opaque, const struct content_answer *answer)
{
    struct file_check *c = opaque;
    struct allowlist *list = NULL;
    struct providers *providers = NULL;
    struct str text = answer->body.ptr ? answer->body : STR_LIT("");
    if (answer->err)
        c->err = why_set(c->why, ERR_STOP, "%s", answer->reason);
    else if (c->is_list)
        c->err = allowlist_parse(&list, c->name, text, c->why);
    else
        c->err = providers_parse(&providers, c->name, text, c->why);
    allowlist_free(list);
    providers_free(providers);
}

static enum err check_file(const struct content_source *source, bool is_list, struct why *why)
{
    struct file_check check = { .is_list = is_list, .name = source->text, .why = why };
    if (source->kind != CONTENT_FILE)
        return OK;
    enum err err =
        content_fetch(source, NULL, NULL, STR_NONE, ALLOWLIST_MAX_BYTES, check_text, &check, why);
    return err || check.err ? ERR_STOP : OK;
}

/* On the feed's thread. */
static void allowlist_refused(const struct why *why)
{
    log_warn("allowlist_record_refused", LOG_STR("error", str_of(why->text)));
}

static enum err start(struct daemon_ctx *ctx, bool check_only, void **opaque, struct why *why)
{
    struct dispatcher *d = mem_alloc(1, sizeof(*d));
    enum err err = read_config(d, daemon_config(ctx), why);
    if (!err && check_only)
        err = check_file(&d->allowlist, true, why);
    if (!err && check_only && d->has_providers)
        err = check_file(&d->providers, false, why);
    if (!err && !check_only)
        err = allowlist_feed_new(&d->feed, &d->kafka, d->topics.name[TOPIC_ALLOWLIST],
                                 allowlist_refused, daemon_watch(ctx, "allowlist"), why);
    if (err)
        stop(d);
    else
        *opaque = d;
    return err;
}

int main(int argc, char **argv)
{
    const struct daemon_spec spec = {
        .daemon = DAEMON_DISPATCHER,
        .name = "crcr-dispatcher",
        .summary = "Sends repository_dispatch to every downstream of an upstream event.",
        .admin_default = "127.0.0.1:9102",
        .roles = roles,
        .n_roles = sizeof(roles) / sizeof(roles[0]),
        .families = dispatcher_metrics,
        .n_families = dispatcher_n_metrics,
        .start = start,
        .stop = stop,
    };
    return daemon_main(&spec, argc, argv, environ);
}
