#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "args.h"
#include "daemon_private.h"

enum { EXIT_DRAINED = 0, EXIT_FAILED = 1, EXIT_REFUSED = 2 };
enum { DRAIN_MS = 25000, TEXT_MAX = 256 * 1024, ROLES_MAX = 1024 };

const struct config *daemon_config(const struct daemon_ctx *ctx)
{
    return ctx->config;
}

struct metrics *daemon_metrics(const struct daemon_ctx *ctx)
{
    return ctx->metrics;
}

const char *daemon_owner(const struct daemon_ctx *ctx)
{
    return ctx->owner;
}

bool daemon_has_role(const struct daemon_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->n_roles; i++)
        if (strcmp(ctx->roles[i].role->name, name) == 0)
            return true;
    return false;
}

bool daemon_stopping(const struct daemon_ctx *ctx)
{
    return atomic_load(&ctx->stopping);
}

/* The admin port is open meanwhile, so the name is stored last. */
atomic_llong *daemon_watch(struct daemon_ctx *ctx, const char *name)
{
    struct watched_thread *w = ctx->watched;
    while (atomic_load(&w->name))
        w++;
    atomic_store(&w->alive_ms, clock_mono_ms());
    atomic_store(&w->name, name);
    return &w->alive_ms;
}

enum err watch_check_health(struct watched_thread *watched, struct why *why)
{
    const char *name = atomic_load(&watched->name);
    if (!name)
        return OK;
    struct health health;
    health_init(&health, atomic_load(&watched->alive_ms));
    enum err err = health_check(&health, clock_mono_ms(), why);
    return err ? why_prefix(why, err, "%s", name) : OK;
}

/* ---- what is printed and then done ---- */

static void print_and_clear(FILE *to, struct buf *text)
{
    fputs(buf_str(text).ptr, to);
    fflush(to); /* in front of what goes to stderr */
    buf_clear(text);
}

static int print_help(const struct daemon_spec *spec)
{
    struct buf roles, text;
    buf_init(&roles, TEXT_MAX);
    buf_init(&text, TEXT_MAX);
    buf_puts(&roles, "Roles, each with its own thread and consumer group:\n\n");
    for (size_t i = 0; i < spec->n_roles; i++)
        buf_printf(&roles, "  %-10s %s\n", spec->roles[i].name, spec->roles[i].help);
    buf_putc(&roles, '\n');
    config_help(spec->daemon, spec->name, spec->summary, buf_str(&roles).ptr, &text);
    print_and_clear(stdout, &text);
    buf_clear(&roles);
    return EXIT_DRAINED;
}

/* ---- roles ---- */

static enum err add_role(struct daemon_ctx *ctx, const struct role *role, struct why *why)
{
    if (daemon_has_role(ctx, role->name))
        return OK;
    enum err err = role_init(&ctx->roles[ctx->n_roles], role, ctx, why);
    if (!err)
        ctx->n_roles++;
    return err;
}

static enum err add_named_role(struct daemon_ctx *ctx, struct str name, struct why *why)
{
    const struct daemon_spec *spec = ctx->spec;
    struct buf CLEANUP(buf_clear) known;
    buf_init(&known, 256);
    for (size_t i = 0; i < spec->n_roles; i++) {
        if (str_is(name, spec->roles[i].name))
            return add_role(ctx, &spec->roles[i], why);
        buf_printf(&known, "%s%s", i ? ", " : "", spec->roles[i].name);
    }
    return why_set(why, ERR_REFUSE, "%s has no role \"%.*s\"; accepted: %s", spec->name,
                   STR_ARG(name), buf_str(&known).ptr);
}

/* --roles, else CRCR_ROLES where there is a choice; absent or empty: all. */
static enum err choose_roles(struct daemon_ctx *ctx, struct str names, struct why *why)
{
    const struct daemon_spec *spec = ctx->spec;
    enum err err = OK;
    ctx->roles = mem_alloc(spec->n_roles, sizeof(*ctx->roles));
    if (!names.ptr && spec->n_roles > 1)
        names = str_of(config_text(ctx->config, "CRCR_ROLES"));
    if (names.len == 0)
        for (size_t i = 0; !err && i < spec->n_roles; i++)
            err = add_role(ctx, &spec->roles[i], why);
    struct str name;
    while (!err && str_split(&names, ',', &name))
        err = add_named_role(ctx, str_trim(name), why);
    return err;
}

/* ---- the life ---- */

static void begin_logs(const struct daemon_ctx *ctx)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    const char *level = config_text(ctx->config, "CRCR_LOG_LEVEL");
    bool text = strcmp(config_text(ctx->config, "CRCR_LOG_FORMAT"), "text") == 0;
    int i = 0;
    while (strcmp(level, levels[i]) != 0)
        i++;
    log_init(ctx->spec->name, (enum log_level)i, text ? LOG_TEXT : LOG_JSON);
}

static const char *admin_listen(const struct daemon_ctx *ctx)
{
    const char *given = config_text(ctx->config, "CRCR_ADMIN_LISTEN");
    return given ? given : ctx->spec->admin_default;
}

/* On the signal thread. */
static void on_stop(void *opaque, const char *reason)
{
    struct daemon_ctx *ctx = opaque;
    log_info("stopping", LOG_STR("reason", str_of(reason)));
    atomic_store(&ctx->stopping, true);
    for (size_t i = 0; i < ctx->n_roles; i++)
        wake_up(&ctx->roles[i].wake);
}

/* What is still under way, and for how long it was not heard of. */
static void on_given_up(void *opaque, const char *reason)
{
    struct daemon_ctx *ctx = opaque;
    struct buf CLEANUP(buf_clear) roles;
    buf_init(&roles, ROLES_MAX);
    for (size_t i = 0; i < ctx->n_roles; i++) {
        struct health health = role_health_now(&ctx->roles[i]);
        if (!health.ended)
            buf_printf(&roles, "%s%s (%" PRId64 " ms)", roles.len ? ", " : "",
                       ctx->roles[i].role->name, clock_mono_ms() - health.alive_ms);
    }
    for (struct watched_thread *w = ctx->watched; w < ctx->watched + WATCHED_MAX; w++)
        if (watch_check_health(w, NULL)) /* it is waited for in vain */
            buf_printf(&roles, "%s%s (%" PRId64 " ms)", roles.len ? ", " : "",
                       atomic_load(&w->name), clock_mono_ms() - (int64_t)atomic_load(&w->alive_ms));
    log_error("drain_given_up", LOG_STR("reason", str_of(reason)),
              LOG_STR("roles", buf_str(&roles)));
}

static const struct stop_hooks stop_hooks = { on_stop, on_given_up };

/* Starts the role threads and waits until all have ended. */
static int run_roles(struct daemon_ctx *ctx, void *opaque)
{
    int code = EXIT_DRAINED;
    for (size_t i = 0; i < ctx->n_roles; i++) {
        struct why why;
        if (role_start(&ctx->roles[i], opaque, &why)) {
            log_error("start_failed", LOG_STR("reason", str_of(why.text)));
            stop_ask(ctx->stop, "role not started");
            code = EXIT_FAILED;
            break;
        }
        log_info("role_started", LOG_STR("role", str_of(ctx->roles[i].role->name)));
    }
    for (size_t i = 0; i < ctx->n_roles; i++)
        if (role_join(&ctx->roles[i]))
            code = EXIT_FAILED;
    return code;
}

static int live(struct daemon_ctx *ctx)
{
    struct why why = { "" };
    void *opaque = NULL;
    process_raise_max_fds();
    enum err err = stop_new(&ctx->stop, DRAIN_MS, &stop_hooks, ctx, &why);
    if (!err)
        err = admin_new(&ctx->admin, ctx, admin_listen(ctx), &why);
    if (!err) {
        log_info("listening", LOG_STR("what", STR_LIT("admin")),
                 LOG_STR("address", str_of(admin_listen(ctx))),
                 LOG_INT("port", admin_port(ctx->admin)));
        err = ctx->spec->start(ctx, false, &opaque, &why);
    }
    int code = EXIT_DRAINED;
    if (err) {
        log_error("start_failed", LOG_STR("kind", str_of(err_name(err))),
                  LOG_STR("reason", str_of(why.text)));
        code = err == ERR_REFUSE || err == ERR_STOP ? EXIT_REFUSED : EXIT_FAILED;
    } else {
        log_info("started", LOG_STR("version", str_of(daemon_version())),
                 LOG_STR("owner", str_of(ctx->owner)));
        err = watchdog_new(&ctx->watchdog, ctx, &why);
        if (!err)
            err = watchdog_start(ctx->watchdog, &why);
        if (err)
            log_error("start_failed", LOG_STR("reason", str_of(why.text)));
        code = err ? EXIT_FAILED : run_roles(ctx, opaque);
    }
    watchdog_free(ctx->watchdog);
    if (atomic_load(&ctx->stalled))
        code = EXIT_FAILED;
    ctx->spec->stop(opaque);
    if (ctx->stop) {
        stop_free(ctx->stop);
        ctx->stop = NULL;
    }
    log_info("stopped", LOG_INT("exit_code", code));
    return code;
}

static int configuration_check(struct daemon_ctx *ctx)
{
    struct why why = { "" };
    void *opaque = NULL;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    config_print(ctx->config, &text);
    print_and_clear(stdout, &text);
    enum err err = ctx->spec->start(ctx, true, &opaque, &why);
    ctx->spec->stop(opaque);
    if (err) {
        fprintf(stderr, "%s: %s\n", ctx->spec->name, why.text);
        return EXIT_REFUSED;
    }
    puts("The configuration is good.");
    return EXIT_DRAINED;
}

/* A line each. */
static void show_faults(const struct daemon_spec *spec, const struct daemon_args *args,
                        struct buf *faults)
{
    struct str rest = buf_str(faults), line;
    while (str_split(&rest, '\n', &line)) {
        if (args->check_config)
            fprintf(stderr, "%s: %.*s\n", spec->name, STR_ARG(line));
        else
            log_error("configuration_refused", LOG_STR("fault", line));
    }
}

/* Reads the configuration and chooses the roles. */
static enum err prepare(struct daemon_ctx *ctx, const struct daemon_args *args,
                        char *const *environment, struct buf *faults)
{
    struct why why;
    enum err err = config_load(&ctx->config, ctx->spec->daemon, environment, faults);
    if (err)
        return err;
    begin_logs(ctx);
    struct buf CLEANUP(buf_clear) unused = BUF_INIT(1024);
    config_find_of_pytorch(environment, &unused);
    if (unused.len)
        log_warn("settings_not_read", LOG_STR("names", buf_str(&unused)),
                 LOG_STR("reason", STR_LIT("they are of PyTorch's relay; deploy/FROM_PYTORCH.md "
                                           "says what they become")));
    err = choose_roles(ctx, args->roles, &why);
    if (err)
        buf_printf(faults, "%s\n", why.text);
    ctx->metrics = metrics_new(ctx->spec->families, ctx->spec->n_families);
    process_owner(ctx->owner, sizeof(ctx->owner));
    return err;
}

int daemon_main(const struct daemon_spec *spec, int argc, char **argv, char *const *environment)
{
    struct daemon_args args;
    struct why why;
    if (args_parse(argc, argv, &args, &why)) {
        fprintf(stderr, "%s: %s (--help shows the usage)\n", spec->name, why.text);
        return EXIT_REFUSED;
    }
    if (args.help)
        return print_help(spec);
    if (args.version) {
        printf("%s %s\n", spec->name, daemon_version());
        return EXIT_DRAINED;
    }
    /* By default up to eight a core, of which each keeps what its busiest moment took. */
    (void)mallopt(M_ARENA_MAX, 2);
    process_refuse_cores();
#ifndef CRCR_SANITIZED /* LeakSanitizer attaches to what it looks at */
    process_refuse_tracing();
#endif
    log_init(spec->name, LOG_INFO, LOG_JSON);
    struct daemon_ctx ctx = { .spec = spec };
    struct buf CLEANUP(buf_clear) faults;
    buf_init(&faults, TEXT_MAX);
    int code = EXIT_REFUSED;
    if (prepare(&ctx, &args, environment, &faults))
        show_faults(spec, &args, &faults);
    else
        code = args.check_config ? configuration_check(&ctx) : live(&ctx);
    admin_free(ctx.admin);
    for (size_t i = 0; i < ctx.n_roles; i++)
        role_clear(&ctx.roles[i]);
    free(ctx.roles);
    metrics_free(ctx.metrics);
    config_free(ctx.config);
    return code;
}
