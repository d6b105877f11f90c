/* The simulator: one thread that owns everything below; the HTTP server hands requests in through
 * the inbox, and each noun (app, checks, runs, …) keeps its own state behind its own header. */
#ifndef CRCR_SIM_SIM_H
#define CRCR_SIM_SIM_H

#include <stdio.h>

#include "../../common/io/http_client.h"
#include "../../common/io/http_server.h"

struct options;

struct sim {
    const struct options *options;
    char base_url[96]; /* http://127.0.0.1:<port>, for the links in answers */
    struct wake wake;
    struct inbox *inbox;
    struct timers *timers;
    struct http_client *client; /* callbacks of downstreams, and webhooks */
    struct sendings *sendings;
    struct http_server *server;

    struct record *record;
    FILE *history; /* NULL: none is kept */
    struct script *script;
    struct app *app;
    struct oidc *oidc;
    struct checks *checks;
    struct downstreams *downstreams;
    struct runs *runs;
    struct comments *comments;
    struct pulls *pulls;
    struct json_t *manifests; /* by code: {owner, manifest} */
    struct deliveries *deliveries;
    struct rows *dispatches, *callbacks, *hud;
};

enum err sim_new(struct sim **ret, const struct options *options, struct why *why) MUST_CHECK;
/* NULL and half-built ones are fine. */
void sim_free(struct sim *sim);
/* Forgets everything that requests brought about; rules and downstreams too. */
void sim_reset(struct sim *sim);
/* One turn: what came in, what is due, what moved on the network. */
void sim_turn(struct sim *sim);

/* routes.c: checks, records and answers one request. */
void sim_handle(struct sim *sim, struct http_exchange *x);

#endif
