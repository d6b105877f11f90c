/* The command line of `crcr-sim github`. */
#ifndef CRCR_SIM_OPTIONS_H
#define CRCR_SIM_OPTIONS_H

#include "../../common/base/buf.h"

/* Text is borrowed from the command line. */
struct options {
    bool help;
    const char *listen;
    const char *port_file;
    const char *app_id;
    const char *app_key; /* file */
    const char *callback_url;
    const char *contents;    /* folder */
    const char *record;      /* file */
    const char *history;     /* file */
    const char *script;      /* file */
    const char *downstreams; /* file */
    const char *oidc_key;    /* file; NULL: the App's key serves for both */
    const char *oidc_issuer;
    const char *hud_key;
    const char *webhook_url;
    const char *webhook_secret;
    int64_t token_ttl_s;
    int64_t rate_limit;
    int64_t content_limit;
    int64_t content_window_ms;
    int64_t keep;
};

/* ERR_STOP: what is wrong with which option. */
enum err options_parse(struct options *ret, int argc, char **argv, struct why *why) MUST_CHECK;
void options_help(struct buf *to);

#endif
