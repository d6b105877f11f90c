#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* One row an option. Offset 0 says "not this kind": no option is the first member. */
static const struct option {
    const char *name;
    const char *value; /* what follows it, for --help */
    size_t text;       /* offset of a const char *, or 0 */
    size_t number;     /* offset of an int64_t, or 0 */
    const char *help;
} table[] = {
#define TEXT(field)   offsetof(struct options, field), 0
#define NUMBER(field) 0, offsetof(struct options, field)
    { "--app-id", "N", TEXT(app_id), "the App's id (default 12345)" },
    { "--app-key", "FILE", TEXT(app_key), "the App's private key, PEM (required)" },
    { "--callback-url", "URL", TEXT(callback_url),
      "where downstreams call back; without: nowhere" },
    { "--content-limit", "N", NUMBER(content_limit),
      "check runs and comments made in any --content-window-ms by an installation; one more is 403 "
      "(default: no limit)" },
    { "--content-window-ms", "N", NUMBER(content_window_ms), "(default 60000)" },
    { "--contents", "DIR", TEXT(contents), "files served by the contents API" },
    { "--downstreams", "FILE", TEXT(downstreams), "how downstreams behave, JSON" },
    { "--history", "FILE", TEXT(history),
      "dispatches that took effect and callbacks that got through, a line of JSON each" },
    { "--hud-key", "TEXT", TEXT(hud_key), "what x-hud-internal-bot must say; without: anything" },
    { "--keep", "N", NUMBER(keep), "requests, dispatches, runs … remembered (default 5000)" },
    { "--listen", "HOST:PORT", TEXT(listen), "where to serve (default 127.0.0.1:0, a free port)" },
    { "--oidc-issuer", "URL", TEXT(oidc_issuer), "iss of the tokens (default GitHub Actions')" },
    { "--oidc-key", "FILE", TEXT(oidc_key), "the issuer's private key (default: the App's)" },
    { "--port-file", "FILE", TEXT(port_file), "written with the port once requests are served" },
    { "--rate-limit", "N", NUMBER(rate_limit), "requests an hour and installation (default 5000)" },
    { "--record", "FILE", TEXT(record), "each request is appended as a line of JSON" },
    { "--script", "FILE", TEXT(script), "rules that change answers, JSON" },
    { "--token-ttl", "SECONDS", NUMBER(token_ttl_s), "life of installation tokens (default 3600)" },
    { "--webhook-secret", "TEXT", TEXT(webhook_secret), "signs webhooks" },
    { "--webhook-url", "URL", TEXT(webhook_url), "where webhooks are delivered" },
#undef TEXT
#undef NUMBER
};

static enum err option_set(struct options *o, const char *name, const char *value, struct why *why)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct option *option = &table[i];
        int64_t number;

        if (strcmp(option->name, name) != 0)
            continue;
        if (option->text) {
            *(const char **)((char *)o + option->text) = value;
            return OK;
        }
        if (!str_to_i64(str_of(value), &number) || number < 1 || number > 1000000000)
            return why_set(why, ERR_STOP, "%s takes a number from 1, not \"%s\"", name, value);
        *(int64_t *)((char *)o + option->number) = number;
        return OK;
    }
    return why_set(why, ERR_STOP, "%s is no option; --help lists them", name);
}

enum err options_parse(struct options *ret, int argc, char **argv, struct why *why)
{
    struct options o = {
        .listen = "127.0.0.1:0",
        .app_id = "12345",
        .oidc_issuer = "https://token.actions.githubusercontent.com",
        .webhook_secret = "",
        .token_ttl_s = 3600,
        .rate_limit = 5000,
        .content_window_ms = 60000,
        .keep = 5000,
    };
    enum err err = OK;

    for (int i = 0; i < argc && !err; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            o.help = true;
            break;
        }
        if (i + 1 == argc)
            err = why_set(why, ERR_STOP, "%s needs a value", argv[i]);
        else
            err = option_set(&o, argv[i], argv[i + 1], why);
    }
    if (!err && !o.help && !o.app_key)
        err = why_set(why, ERR_STOP, "--app-key is missing: the file with the App's private key");
    if (!err)
        *ret = o;
    return err;
}

void options_help(struct buf *to)
{
    buf_puts(
        to,
        "usage: crcr-sim github --app-key FILE [options]\n\n"
        "A GitHub to test against: the REST endpoints that the relay calls, the OIDC issuer of\n"
        "Actions, the HUD's API, and downstream repositories that react to a dispatch.\n"
        "tests/sim/README.md says more.\n\n");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char left[64];

        snprintf(left, sizeof(left), "%s %s", table[i].name, table[i].value);
        buf_printf(to, "  %-24s %s\n", left, table[i].help);
    }
}
